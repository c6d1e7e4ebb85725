import { describe, expect, it } from 'vitest';
import { csvRows } from '../../../../src/view/page/text/values.ts';

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
