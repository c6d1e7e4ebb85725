import { expect, it } from 'vitest';
import { fitted } from '../../../src/cli/show/terminal.ts';

const head = ['task', 'file', 'bytes'];
const numbers = ['bytes'];
const rowsOf = (count: number) =>
  Array.from({ length: count }, (_, row) => [String(row), 'žluťoučký 👩🏽‍🔬', `${row}00`]);
const drawn = (rows: string[][], columns = 80) => fitted({ head, rows, numbers }, columns);

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
  expect(drawn(rowsOf(1), 30)).toEqual(['0 žluťoučký 👩🏽‍🔬', '  bytes 000']);
});

it('a table of 20,000 rows is drawn like a short one', () => {
  const lines = drawn(rowsOf(20_000));
  expect(lines).toHaveLength(20_004);
  expect(new Set(lines.slice(3, -1).map(({ length }) => length)).size).toBe(1);
  expect(lines.slice(3, -1).map((line) => line.split('│')[1]?.trim())).toEqual(rowsOf(20_000).map(([task]) => task));
});
