import { describe, expect, it } from 'vitest';
import { risingColumn } from '../../../../src/view/page/text/plotted.ts';

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
