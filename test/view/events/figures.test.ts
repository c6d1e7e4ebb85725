/** What is kept of the last hours, in bounded memory. */
import { describe, expect, it } from 'vitest';
import type { JobId } from '../../../src/job.ts';
import type { LiveSums } from '../../../src/store/totals.ts';
import { AgentFigures, Growth } from '../../../src/view/events/figures.ts';

describe('what the agent counts', () => {
  it('is taken once', () => {
    const figures = new AgentFigures();
    figures.call({ operation: 'Get', outcome: 'ok' });
    figures.call({ operation: 'Get', outcome: 'timeout' });
    figures.signIn('sign-in-refused');
    expect(figures.take(2)).toEqual({
      calls: { Get: 2 },
      failures: { timeout: 1, 'sign-in-refused': 1 },
      ...{ signIns: 1, waiting: 2 },
    });
    expect(figures.take(0)).toEqual({
      calls: {},
      failures: {},
      signIns: 0,
      waiting: 0,
    });
  });
});

describe('the growth of a job', () => {
  const job = '501' as JobId;
  const sums = (bytes: number) => new Map([[job, { tasks: 1, bytes, error: null } satisfies LiveSums]]);

  it('is seen from the first seconds on, and what stays the same is not reported again and again', () => {
    const growth = new Growth();
    expect(growth.of(job, [1, 5]), 'nothing is noted yet').toEqual([[1, 5]]);
    for (const [at, bytes] of [
      [10, 3],
      [20, 3],
      [30, 3],
      [40, 4],
      [50, 6],
    ] as const)
      growth.add(sums(bytes), at * 1_000);
    const seen = [
      [10_000, 3],
      [30_000, 3],
      [40_000, 4],
      [50_000, 6],
    ];
    expect(growth.of(job, [50_000, 6])).toEqual(seen);
    expect(growth.of(job, [55_000, 7]), 'what came since').toEqual([...seen, [55_000, 7]]);
    for (let at = 60; at < 600; at += 10) growth.add(sums(6), at * 1_000);
    expect(growth.of(job, [50_000, 6])).toEqual(seen);
    growth.add(new Map(), 600_000);
    expect(growth.of(job, [7, 7]), 'a job that is gone is forgotten').toEqual([[7, 7]]);
  });

  it.each([1, 10, 61, 62, 200, 360, 2_000])(
    'is bounded after %i samples, and covers the last hour evenly',
    (samples) => {
      const growth = new Growth();
      for (let sample = 1; sample <= samples; sample++) growth.add(sums(sample), sample * 10_000);
      const points = growth.of(job, [samples * 10_000, samples]);
      expect(points.length).toBeLessThanOrEqual(61);
      expect(points.length).toBeGreaterThanOrEqual(Math.min(samples, 25));
      // Each is true, in order, and the last one is how it is now.
      expect(points.every(([at, bytes]) => at === bytes * 10_000)).toBe(true);
      expect(points.map(([at]) => at)).toEqual(points.map(([at]) => at).toSorted((a, b) => a - b));
      expect(points.at(-1)).toEqual([samples * 10_000, samples]);
      const hour = Math.min(samples - 1, 360) * 10_000;
      const covered = (points.at(-1)?.[0] ?? 0) - (points[0]?.[0] ?? 0);
      expect(covered).toBeGreaterThanOrEqual(hour - 10_000);
      expect(covered).toBeLessThanOrEqual(hour * 1.1 + 10_000);
      const gaps = points.slice(1).map(([at], index) => at - (points[index]?.[0] ?? 0));
      expect(Math.max(0, ...gaps)).toBeLessThanOrEqual(Math.max(10_000, hour / 12));
    },
  );
});
