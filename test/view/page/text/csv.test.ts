import { describe, expect, it } from 'vitest';
import { csvRows, isNumeric, sortedRows } from '../../../../src/view/page/text/values.ts';

describe('divided values', () => {
  it.each([
    [
      'commas',
      'a,b\n1,2\n',
      [
        ['a', 'b'],
        ['1', '2'],
      ],
    ],
    [
      'semicolons, with commas in numbers',
      'a;b\r\n1,5;2\r\n',
      [
        ['a', 'b'],
        ['1,5', '2'],
      ],
    ],
    [
      'tabs',
      'a\tb\n1\t2',
      [
        ['a', 'b'],
        ['1', '2'],
      ],
    ],
    [
      'quotes',
      '"a ""b"", c",d\n"two\nlines",e',
      [
        ['a "b", c', 'd'],
        ['two\nlines', 'e'],
      ],
    ],
    ['a quote that never ends', 'a,"b\nc', [['a', 'b\nc']]],
    [
      'empty ones',
      'a,,\n,\n',
      [
        ['a', '', ''],
        ['', ''],
      ],
    ],
    ['nothing', '', []],
  ])('%s', (_, text, rows) => {
    expect(csvRows(text)).toEqual(rows);
  });
});

describe('sorted rows', () => {
  const rows = [
    ['10', 'b'],
    ['9', 'a'],
    ['', 'c'],
    ['n/a', 'd'],
    ['-1e3', 'e'],
  ];
  const letters = (column: number, isFalling: boolean) =>
    sortedRows(rows, column, isFalling)
      .map(([, letter]) => letter)
      .join('');

  it('are ordered by numbers, then texts, and rows without a value are last', () => {
    expect(letters(0, false)).toBe('eabdc');
    expect(letters(0, true)).toBe('dbaec');
    expect(letters(1, true)).toBe('edcba');
    expect(letters(7, false)).toBe('bacde');
  });
});

it('has numbers alone in a column, or texts', () => {
  const rows = [['1', 'a', '', '1,5'], ['-2e3', '2', '', ''], ['3']];
  expect([0, 1, 2, 3, 4].map((column) => isNumeric(rows, column))).toEqual([true, false, false, true, false]);
});
