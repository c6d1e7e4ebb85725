import { describe, expect, it } from 'vitest';
import type { Figure } from '../../../../src/view/contract/events.ts';
import { callCurves, failureCurves, rateCurves } from '../../../../src/view/page/service/curves.ts';

const figure = (at: number, liveBytes: number, agent: Figure['agent'] = null): Figure => ({
  at,
  seconds: 10,
  liveBytes,
  agent,
});
const rest = { signIns: 0, waiting: 0 };

describe('curves of the service', () => {
  it('are the growth of the mirrors a second; what is rewritten does not shrink it', () => {
    expect(rateCurves([figure(10_000, 0), figure(20_000, 100), figure(30_000, 40)]).columns).toEqual([
      [10, 20, 30],
      [null, 10, 0],
    ]);
  });

  it('are calls a minute by operation, and failures by their code', () => {
    const figures = [
      figure(10_000, 0, { ...rest, calls: {}, failures: { timeout: 2 } }),
      figure(20_000, 0, { ...rest, calls: { List: 3 }, failures: {} }),
    ];
    expect(callCurves(figures)).toEqual({
      names: ['time', 'List'],
      columns: [
        [10, 20],
        [0, 18],
      ],
    });
    expect(failureCurves(figures)).toEqual({
      names: ['time', 'timeout'],
      columns: [
        [10, 20],
        [12, 0],
      ],
    });
  });

  it('have no names where nothing is known', () => {
    expect(callCurves([figure(0, 0)]).names).toEqual(['time']);
  });
});
