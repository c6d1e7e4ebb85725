import { expect, it } from 'vitest';
import { columnsOf, fitted, wrapToColumns } from '../../../src/cli/show/terminal.ts';

const head = ['task', 'file', 'bytes'];
const numbers = ['bytes'];
const rowsOf = (count: number) =>
  Array.from({ length: count }, (_, row) => [String(row), 'žluťoučký 👩🏽‍🔬', `${row}00`]);
const drawn = (rows: string[][], columns = 80) => fitted({ head, rows, numbers }, columns);

it('a table has its head and a row for each, without trailing blanks', () => {
  expect(drawn([...rowsOf(1), ['1', '日本', '']])).toEqual([
    'task  file          bytes',
    '0     žluťoučký 👩🏽‍🔬    000',
    '1     日本',
  ]);
  expect(drawn([])).toHaveLength(1);
  expect(drawn(rowsOf(1), 20)).toEqual(['0 žluťoučký 👩🏽‍🔬', '  bytes 000']);
});

it('a table of 20,000 rows is drawn like a short one', () => {
  const lines = drawn(rowsOf(20_000).map(([row = '', , bytes = '']) => [row, 'stdout', bytes]));
  expect(lines).toHaveLength(20_001);
  expect(new Set(lines.map(({ length }) => length)).size).toBe(1);
  expect(lines.slice(1).map((line) => line.split(' ')[0])).toEqual(rowsOf(20_000).map(([task]) => task));
});

it('a table that is too wide wraps its widest cells between words, and never a word', () => {
  const rows = [['501', 'of the second hall', '1']];
  expect(drawn(rows, 24)).toEqual(['task  file         bytes', '501   of the           1', '      second hall']);
  expect(drawn([['501', 'incomprehensibilities', '1']], 28)).toEqual(['501 incomprehensibilities', '  bytes 1']);
});

it('the columns are those of the terminal, or of COLUMNS', () => {
  expect(columnsOf({ isTTY: true, columns: 100 })).toBe(100);
  expect(columnsOf({}, {})).toBe(Number.POSITIVE_INFINITY);
  expect(columnsOf({}, { COLUMNS: '94' })).toBe(94);
});

it('a coloured text that is wrapped has its colour on each line, and a hanging indent', () => {
  const [red, end] = ['\u001b[31m', '\u001b[39m'];
  expect(wrapToColumns(`  one ${red}two three${end} four`, 9, 2)).toEqual([
    `  one ${red}two\u001b[0m`,
    `${red}    three${end}`,
    '    four',
  ]);
});
