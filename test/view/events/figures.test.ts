/** The figures behind the charts of the service: rates between two counts of the agent. */
import { expect, it } from 'vitest';
import { AgentCounts, Figures } from '../../../src/view/events/figures.ts';

const SECOND = 1_000;

it('the history of figures has a rate between two counts, and none of what was counted before the view began', () => {
  const counts = new AgentCounts();
  const figures = new Figures();
  counts.bytes = 1_000_000;
  counts.call('Get', 'timeout');
  figures.add(structuredClone(counts), 0);
  expect(figures.all).toEqual([]);

  counts.bytes += 5_000;
  counts.call('Get', 'ok');
  counts.call('Get', 'aborted');
  // A file that is not there yet: an answer, which no log explains.
  counts.call('Get', 'fault');
  counts.call('Get', 'not-found');
  counts.ended('sign-in-refused');
  figures.add(structuredClone(counts), 5 * SECOND);
  const failures = { 'does not answer': 0, 'refuses the sign-in': 12 };
  expect(figures.all).toEqual([{ at: 5 * SECOND, bytes: 1_000, calls: { Get: 48 }, failures }]);
});

it('the history of figures has no rate of a moment before the last one: a clock that was set back', () => {
  const figures = new Figures();
  const at = (bytes: number, seconds: number) =>
    figures.add({ ...new AgentCounts(), bytes } as AgentCounts, seconds * SECOND);
  at(0, 100);
  at(5, 105);
  at(10, 90);
  at(30, 95);
  expect(figures.all).toEqual([{ at: 95_000, bytes: 4, calls: {}, failures: {} }]);
});

it('the history of figures keeps figures of the last two hours only', () => {
  const figures = new Figures();
  for (let pulse = 0; pulse < 2_000; pulse++) figures.add(new AgentCounts(), pulse * 5 * SECOND);
  expect(figures.all).toHaveLength(1_440);
  expect(figures.all.at(-1)?.at).toBe(1_999 * 5 * SECOND);
});
