/** What is kept of the time since the start: bounded, and without a loss of what is counted. */
import { describe, expect, it } from 'vitest';
import type { JobId } from '../../../src/job.ts';
import type { LiveSums } from '../../../src/store/totals.ts';
import type { Figure } from '../../../src/view/contract.ts';
import { AgentFigures } from '../../../src/view/events/agent-figures.ts';
import { FigureHistory } from '../../../src/view/events/figures.ts';
import { Growth } from '../../../src/view/events/growth.ts';

const figure = (at: number): Figure => ({
  ...{ at, seconds: 10, liveBytes: at, watchedJobs: 1, failingJobs: 0, failingFiles: 0, freeBytes: { state: at } },
  agent: {
    calls: {
      Get: { calls: 2, bytes: 10, totalMs: 4, longestMs: at },
      [`Only${at % 2}`]: { calls: 1, bytes: 1, totalMs: 1, longestMs: 1 },
    },
    failures: at % 3 === 0 ? { timeout: 1 } : {},
    ...{ signIns: 1, waiting: at, mirroredBytes: 3, resultBytes: 5 },
  },
});

describe('the history of figures', () => {
  it.each([1, 7, 8, 9, 100, 1_000])('of %i is bounded, and counts all of them', (count) => {
    const history = new FigureHistory(8);
    for (let at = 1; at <= count; at++) history.add(figure(at));
    const { all } = history;
    expect(all.length).toBeLessThan(8 + 2 * Math.ceil(count / 4));
    const sum = (of: (each: Figure) => number) => all.reduce((total, each) => total + of(each), 0);
    expect(sum(({ seconds }) => seconds)).toBe(count * 10);
    expect(sum(({ agent }) => agent?.calls['Get']?.calls ?? 0)).toBe(count * 2);
    expect(sum(({ agent }) => agent?.calls['Only1']?.calls ?? 0)).toBe(Math.ceil(count / 2));
    expect(sum(({ agent }) => agent?.failures['timeout'] ?? 0)).toBe(Math.floor(count / 3));
    expect(sum(({ agent }) => agent?.mirroredBytes ?? 0)).toBe(count * 3);
    // In order, and the last one is how it is now.
    expect(all.map(({ at }) => at)).toEqual([...all.map(({ at }) => at)].sort((a, b) => a - b));
    expect(all.at(-1)).toMatchObject({ at: count, liveBytes: count, agent: { waiting: count } });
    expect(Math.max(...all.map(({ agent }) => agent?.calls['Get']?.longestMs ?? 0))).toBe(count);
  });
});

describe('what the agent counts', () => {
  it('is taken once', () => {
    const figures = new AgentFigures();
    figures.call({ operation: 'Get', durationMs: 5, outcome: 'ok', bytes: 7 });
    figures.call({ operation: 'Get', durationMs: 3, outcome: 'timeout', bytes: 0 });
    figures.signIn('sign-in-refused');
    figures.mirrored(11);
    figures.fetched(13);
    expect(figures.take(2)).toEqual({
      calls: { Get: { calls: 2, bytes: 7, totalMs: 8, longestMs: 5 } },
      failures: { timeout: 1, 'sign-in-refused': 1 },
      ...{ signIns: 1, waiting: 2, mirroredBytes: 11, resultBytes: 13 },
    });
    expect(figures.take(0)).toEqual({
      calls: {},
      failures: {},
      signIns: 0,
      waiting: 0,
      mirroredBytes: 0,
      resultBytes: 0,
    });
  });
});

describe('the growth of a job', () => {
  const job = '501' as JobId;
  const sums = (bytes: number) =>
    new Map([[job, { files: 1, tasks: 1, bytes, failing: 0, error: null, inexactBytes: 0 } satisfies LiveSums]]);

  it('is of the last hour, without what stayed the same before', () => {
    const growth = new Growth();
    expect(growth.of(job, 5)).toEqual([5]);
    for (const bytes of [3, 3, 3, 4]) growth.add(sums(bytes));
    expect(growth.of(job, 6)).toEqual([3, 4, 6]);
    for (let minute = 0; minute < 100; minute++) growth.add(sums(minute));
    expect(growth.of(job, 100)).toEqual(Array.from({ length: 61 }, (_, index) => 40 + index));
    growth.add(new Map());
    expect(growth.of(job, 7), 'a job that is gone is forgotten').toEqual([7]);
  });
});
