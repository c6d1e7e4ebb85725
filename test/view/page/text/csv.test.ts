import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { csvRows } from '../../../../src/view/page/text/csv.ts';
import { numRuns } from '../../../support/property-runs.ts';

describe('the cells of a CSV file', () => {
  it.each([
    ['commas', 'a,b\n1,2\n', ['a|b', '1|2']],
    ['semicolons, and commas within numbers', 'a;b\r\n1,5;2\r\n', ['a|b', '1,5|2']],
    ['tabs', 'a\tb\n1,2\t3', ['a|b', '1,2|3']],
    ['quoted line ends and quotes', '"a ""x""","b\nc"\n1,2\n', ['a "x"|b\nc', '1|2']],
    ['a quote that does not end', 'a,b\n"1,2\n', ['a|b', '"1|2']],
    ['empty cells and lines', '\ufeffa,b\n\n,2\n1,\n', ['a|b', '|2', '1|']],
    ['nothing', '', []],
  ])('are found: %s', (_, text, rows) => {
    expect(csvRows(text).map((cells) => cells.join('|'))).toEqual(rows);
  });

  it('are those that were written, whatever is in them', () => {
    const cell = fc.oneof(fc.string(), fc.constantFrom('"', ',', '\n', '\r\n', '""', '1.5'));
    fc.assert(
      fc.property(fc.array(fc.array(cell, { minLength: 2, maxLength: 2 }), { maxLength: 20 }), (rows) => {
        const all = [['first', 'second'], ...rows.filter((row) => row.some((one) => one !== ''))];
        const text = all.map((row) => row.map((one) => `"${one.replaceAll('"', '""')}"`).join(',')).join('\r\n');
        expect(csvRows(text)).toEqual(all);
      }),
      numRuns(200),
    );
  });
});
