/** The cells of a CSV file: separated by commas, semicolons or tabs; quoted ones may hold those, quotes and line ends. */

const SEPARATORS = [',', ';', '\t'] as const;

/** Rows from the first one on. A separator is what the first line has most of. */
export function csvRows(text: string): string[][] {
  const [first = ''] = text.split('\n', 1);
  const occurs = (separator: string) => first.split(separator).length;
  const separator = SEPARATORS.reduce((one, other) => (occurs(other) > occurs(one) ? other : one));
  const cells = new RegExp(`("[^"]*(?:""[^"]*)*"|[^${separator}\r\n]*)(${separator}|\r?\n|\r|$)`, 'gy');
  const rows: string[][] = [];
  let row: string[] = [];
  for (const [match, cell = '', end] of text.replace(/^\ufeff/, '').matchAll(cells)) {
    if (match === '' && row.length === 0) continue;
    row.push(/^".*"$/s.test(cell) ? cell.slice(1, -1).replaceAll('""', '"') : cell);
    if (end === separator) continue;
    if (row.some((one) => one !== '')) rows.push(row);
    row = [];
  }
  return rows;
}
