import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { risingColumn, smoothed } from '../../../../src/view/page/text/plotted.ts';

const rows = [1, 2, 3, 4];

describe('the column that curves are drawn over', () => {
  it.each([
    ['the first that rises', [rows, [5, 5, 5, 5], [10, 20, 30, 40], [1, 2, 3, 4]], 2],
    ['the count of rows, if none rises', [rows, [4, 3, 2, 1]], 0],
    ['none that begins anew', [rows, [10, 20, 10, 20]], 0],
    ['none with gaps', [rows, [10, null, 30, 40]], 0],
    ['none of two rows', [rows.slice(0, 2), [10, 20]], 0],
    ['none where nothing is', [], 0],
  ])('is %s', (_, columns, expected) => {
    expect(risingColumn(columns)).toBe(expected);
  });
});

describe('a smoothed column', () => {
  it('keeps gaps, its first value, and values that do not change', () => {
    expect(smoothed([5, null, 5, 5], 0.9)).toEqual([expect.closeTo(5), null, expect.closeTo(5), expect.closeTo(5)]);
    expect(smoothed([1, 9], 0)).toEqual([1, 9]);
  });

  it('stays between the values so far', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: -1000, max: 1000 })),
        fc.constantFrom(0.6, 0.9, 0.98),
        (column, weight) => {
          for (const [index, value] of smoothed(column, weight).entries()) {
            const so = column.slice(0, index + 1);
            expect(value).toBeGreaterThanOrEqual(Math.min(...so) - 1e-6);
            expect(value).toBeLessThanOrEqual(Math.max(...so) + 1e-6);
          }
        },
      ),
    );
  });
});
