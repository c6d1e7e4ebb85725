import { expect, it } from 'vitest';
import { displayOf, fitted, wrapToColumns } from '../../../src/cli/show/terminal.ts';

const head = ['task', 'file', 'bytes'];
const numbers = ['bytes'];
const rowsOf = (count: number) =>
  Array.from({ length: count }, (_, row) => [String(row), 'žluťoučký 👩🏽‍🔬', `${row}00`]);
const drawn = (rows: string[][], columns = 80, hasBoxes = true) =>
  fitted({ head, rows, numbers }, { columns, hasBoxes });

it('a table has its head, a line below it, and a row for each', () => {
  expect(drawn([...rowsOf(1), ['1', '日本', '']])).toEqual([
    '┌──────┬──────────────┬───────┐',
    '│ task │ file         │ bytes │',
    '├──────┼──────────────┼───────┤',
    '│ 0    │ žluťoučký 👩🏽‍🔬 │   000 │',
    '│ 1    │ 日本         │       │',
    '└──────┴──────────────┴───────┘',
  ]);
  expect(drawn([])).toHaveLength(4);
  expect(drawn(rowsOf(1), 24)).toEqual(['0 žluťoučký 👩🏽‍🔬', '  bytes 000']);
});

it('a table of 20,000 rows is drawn like a short one', () => {
  const lines = drawn(rowsOf(20_000).map(([row = '', , bytes = '']) => [row, 'stdout', bytes]));
  expect(lines).toHaveLength(20_004);
  expect(new Set(lines.slice(3, -1).map(({ length }) => length)).size).toBe(1);
  expect(lines.slice(3, -1).map((line) => line.split('│')[1]?.trim())).toEqual(rowsOf(20_000).map(([task]) => task));
});

it('a table that is too wide wraps its widest cells between words, and never a word', () => {
  const rows = [['501', 'of the second hall', '1']];
  expect(drawn(rows, 28)).toEqual([
    '┌──────┬───────────┬───────┐',
    '│ task │ file      │ bytes │',
    '├──────┼───────────┼───────┤',
    '│ 501  │ of the    │     1 │',
    '│      │ second    │       │',
    '│      │ hall      │       │',
    '└──────┴───────────┴───────┘',
  ]);
  expect(drawn([['501', 'incomprehensibilities', '1']], 28)).toEqual(['501 incomprehensibilities', '  bytes 1']);
});

it('a table has no boxes where the terminal or the locale has none, and no trailing blanks', () => {
  expect(drawn(rowsOf(1), 80, false)).toEqual(['task  file          bytes', '0     žluťoučký 👩🏽‍🔬    000']);
  const terminal = { isTTY: true, columns: 100 };
  expect(displayOf(terminal, { LANG: 'C.UTF-8', TERM: 'xterm' })).toEqual({ columns: 100, hasBoxes: true });
  for (const env of [
    { LANG: 'C', TERM: 'xterm' },
    { LANG: 'C.UTF-8', TERM: 'dumb' },
    { LANG: 'C.UTF-8', LC_ALL: 'C' },
  ])
    expect(displayOf(terminal, env).hasBoxes).toBe(false);
  expect(displayOf({}, { LANG: 'C.UTF-8' })).toEqual({ columns: Number.POSITIVE_INFINITY, hasBoxes: false });
  expect(displayOf({}, { COLUMNS: '94' }).columns).toBe(94);
});

it('a coloured text that is wrapped has its colour on each line, and a hanging indent', () => {
  const [red, end] = ['\u001b[31m', '\u001b[39m'];
  expect(wrapToColumns(`  one ${red}two three${end} four`, 9, 2)).toEqual([
    `  one ${red}two\u001b[0m`,
    `${red}    three${end}`,
    '    four',
  ]);
});
