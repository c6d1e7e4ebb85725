import { describe, expect, it } from 'vitest';
import { curvePath, type Growth, HEIGHT, WIDTH, within } from '../../../../src/view/page/jobs/growth.ts';

const NOW = 10_000_000;
const HOUR = 3_600_000;

/** The points of the path. */
function points(growth: Growth): [number, number][] {
  const numbers =
    curvePath(growth, NOW)
      .match(/[0-9.]+/g)
      ?.map(Number) ?? [];
  return numbers.flatMap((x, index) => (index % 2 === 0 ? [[x, numbers[index + 1] ?? 0] as [number, number]] : []));
}

describe('the curve of a job', () => {
  it('goes from the bottom to the top while it grows, by time', () => {
    const growth: Growth = [
      [NOW - HOUR, 100],
      [NOW - HOUR / 2, 200],
      [NOW - HOUR / 4, 500],
    ];
    expect(points(growth).map(([x]) => x)).toEqual([0, 0, 60, 90, 120]);
    const heights = points(growth).map(([, y]) => y);
    expect([Math.max(...heights), Math.min(...heights)]).toEqual([HEIGHT - 1.5, 1.5]);
    expect([...heights].sort((a, b) => b - a)).toEqual(heights);
    expect(within(growth, NOW)).toEqual({ grown: 400, since: NOW - HOUR });
  });

  it('shows all of a job that is minutes old', () => {
    const growth: Growth = [
      [NOW - 120_000, 0],
      [NOW - 60_000, 10],
      [NOW - 1_000, 20],
    ];
    expect(points(growth).map(([x]) => Math.round(x))).toEqual([0, 0, 60, 119, 120]);
  });

  it.each<[string, Growth]>([
    ['nothing is known', []],
    ['nothing grows', [[NOW - HOUR, 7]]],
    ['it begins right now', [[NOW, 7]]],
    [
      'what is known is older than an hour',
      [
        [NOW - 2 * HOUR, 7],
        [NOW - 1.5 * HOUR, 7],
      ],
    ],
  ])('is a line at the bottom where %s', (_, growth) => {
    for (const [x, y] of points(growth)) {
      expect(y).toBe(HEIGHT - 1.5);
      expect(x).toBeGreaterThanOrEqual(0);
      expect(x).toBeLessThanOrEqual(WIDTH);
    }
  });
});
