/** Tables and lines as wide as the terminal. */
import Table from 'cli-table3';
import pc from 'picocolors';
import stringWidth from 'string-width';
import { wrapToColumns } from './terminal-text.ts';

/** No lines between the rows of a table, except below its head: many rows fit on one screen. */
const BETWEEN_ROWS = { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' };

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
  const table = new Table({ head: [...head], style: plainStyle(), chars: BETWEEN_ROWS, colAligns });
  table.push(...rows);
  const lines = table.toString().split('\n');
  const below = lines[0]?.replace('┌', '├').replace('┐', '┤').replaceAll('┬', '┼') ?? '';
  lines.splice(2, 0, below);
  return stringWidth(lines[0] ?? '') <= columns ? lines : narrow();
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
