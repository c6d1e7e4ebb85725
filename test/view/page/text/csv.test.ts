import { describe, expect, it } from 'vitest';
import { csvRows, valuesOf } from '../../../../src/view/page/text/values.ts';

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

it('are numbers where all of a column are, else texts', () => {
  const rows = [['1', 'a', '', '1,5'], ['-2e3', '2', '', ''], ['3']];
  expect([0, 1, 2, 3, 4].map((column) => valuesOf(rows, column))).toEqual([
    [1, -2000, 3],
    ['a', '2', null],
    [null, null, null],
    [1.5, null, null],
    [null, null, null],
  ]);
});
