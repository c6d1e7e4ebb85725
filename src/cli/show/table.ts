/** Tables and lines as wide as the terminal. */
import Table from 'cli-table3';
import pc from 'picocolors';
import stringWidth from 'string-width';
import { slicesOf } from '../../slices.ts';
import { wrapToColumns } from './terminal-text.ts';

/** No lines between the rows of a table, except below its head: many rows fit on one screen. */
const BETWEEN_ROWS = { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' };

/** The time that the drawing of a table takes grows with the square of its rows. */
const ROWS_AT_A_TIME = 50;

interface Fitted {
  readonly head: readonly string[];
  readonly rows: readonly string[][];
  /** Columns that stand right. */
  readonly numbers?: readonly string[];
  /** What is shown instead where the table has no room. */
  readonly narrow: () => readonly string[];
}

/** The lines of a table, or those shown instead. */
export function fitted({ head, rows, numbers = [], narrow }: Fitted, columns: number): readonly string[] {
  const colAligns = head.map((name) => (numbers.includes(name) ? 'right' : 'left'));
  const colWidths = widthsOf([head, ...rows]);
  const drawn = (some: readonly (readonly string[])[], ofHead: readonly string[]) => {
    const table = new Table({ head: [...ofHead], style: plainStyle(), chars: BETWEEN_ROWS, colAligns, colWidths });
    table.push(...some.map((row) => [...row]));
    return table.toString().split('\n');
  };
  const [top = '', names = '', bottom = ''] = drawn([], head);
  if (stringWidth(top) > columns) return narrow();
  const below = top.replace('┌', '├').replace('┐', '┤').replaceAll('┬', '┼');
  return [top, names, below, ...slicesOf(rows, ROWS_AT_A_TIME).flatMap((some) => drawn(some, []).slice(1, -1)), bottom];
}

/** The columns of each column of a table, with a blank on both sides. */
function widthsOf(rows: readonly (readonly string[])[]): number[] {
  const widths: number[] = [];
  for (const row of rows)
    for (const [column, text] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, stringWidth(text) + 2);
  return widths;
}

/** Lines on a page; those that are of no table are wrapped. */
export const pageText = (lines: readonly string[], columns: number): string =>
  `${lines.flatMap((line) => (isOfTable(line) ? [line] : wrapToColumns(line, columns))).join('\n')}\n`;

/** Infinity where the standard output is no terminal. */
export const columnsOfTerminal = (): number =>
  process.stdout.isTTY ? process.stdout.columns : Number.POSITIVE_INFINITY;

const isOfTable = (line: string) => /[─│]/.test(line);

/** Colours only where the terminal wants them. */
const plainStyle = () => (pc.isColorSupported ? { head: ['bold'], border: ['gray'] } : { head: [], border: [] });
