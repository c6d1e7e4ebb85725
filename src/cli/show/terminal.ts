/** What a terminal shows: text that is harmless and fits, tables, and lines that stay below those that scroll. */
import type { WriteStream } from 'node:tty';
import Table from 'cli-table3';
import pc from 'picocolors';
import stringWidth from 'string-width';
import { slicesOf } from '../../slices.ts';

const ESC = '\u001b';
const BEL = '\u0007';
const RESET = `${ESC}[0m`;

/** A colour (SGR), as the first group; any other escape sequence, complete or not; a character that is not shown. */
const NOT_TEXT = new RegExp(
  [
    `(${ESC}\\[[0-9;:]*m)`,
    `${ESC}\\[[0-?]*[ -/]*[@-~]?`,
    `${ESC}[\\]PX^_][^${BEL}${ESC}]*(?:${BEL}|${ESC}\\\\)?`,
    `${ESC}[ -/]*[0-~]?`,
    // Controls, and what turns the direction of the text around it.
    '[\\p{Cc}\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069]',
  ].join('|'),
  'gu',
);

/** One line without anything that breaks a terminal; colours stay where the terminal wants them. */
export function terminalText(line: string, colours = pc.isColorSupported): string {
  const text = line
    .replaceAll('\t', '  ')
    .replaceAll(NOT_TEXT, (_, colour?: string) => (colours ? (colour ?? '') : ''));
  return text.includes(ESC) ? `${text}${RESET}` : text;
}

const COLOUR = new RegExp(`(${ESC}\\[[0-9;:]*m)`);
const CHARACTERS = new Intl.Segmenter();

/** The text, cut to so many columns; an ellipsis stands where something was cut. */
export function cutToColumns(text: string, maxColumns: number): string {
  if (stringWidth(text) <= maxColumns) return text;
  const parts = text.split(COLOUR).flatMap((part, index) =>
    // Every second one is a colour.
    index % 2 === 1 ? [part] : Array.from(CHARACTERS.segment(part), ({ segment }) => segment),
  );
  let columns = 0;
  const end = parts.findIndex((part) => {
    columns += stringWidth(part);
    return columns >= maxColumns;
  });
  const shown = parts.slice(0, end).join('');
  return `${shown}${shown.includes(ESC) ? RESET : ''}…`;
}

/**
 * The text as lines of so many columns, broken between words; all are indented as the first one. Not by wrap-ansi,
 * which composes characters: the name of a file would no longer be the one on the disk.
 */
export function wrapToColumns(text: string, maxColumns: number): string[] {
  if (stringWidth(text) <= maxColumns) return [text];
  const [indent = ''] = /^ */.exec(text) ?? [];
  const lines: string[] = [];
  let line = '';
  for (const word of text.trimStart().split(' ')) {
    const longer = line === '' ? `${indent}${word}` : `${line} ${word}`;
    if (line !== '' && stringWidth(longer) > maxColumns) {
      lines.push(line);
      line = `${indent}${word}`;
    } else line = longer;
  }
  return [...lines, line];
}

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

const CLEAR_BELOW = '\u001b[J';
const LINES_UP = (lines: number) => (lines === 0 ? '' : `\u001b[${lines}A`);

/** What of a terminal is used. */
export type Terminal = Pick<WriteStream, 'write'> & Partial<Pick<WriteStream, 'isTTY' | 'columns'>>;

export class BottomLines {
  readonly #stream: Terminal;
  #shown = '';

  constructor(stream: Terminal) {
    this.#stream = stream;
  }

  /** Whole lines, above those that stay. */
  write(lines: string): void {
    this.#stream.write(`${this.#erasing}${lines}${this.#shown}`);
  }

  /** What is to stand below from now on, each line cut to the width of the terminal. */
  show(lines: readonly string[]): void {
    if (this.#stream.isTTY !== true) return;
    const columns = (this.#stream.columns || 80) - 1;
    const shown = lines.map((line) => cutToColumns(line, columns)).join('\n');
    if (shown === this.#shown) return;
    this.#stream.write(`${this.#erasing}${shown}`);
    this.#shown = shown;
  }

  /** Takes them away. */
  clear(): void {
    this.#stream.write(this.#erasing);
    this.#shown = '';
  }

  /** Leaves them as they stand, and the cursor below them. */
  leave(): void {
    if (this.#shown !== '') this.#stream.write('\n');
    this.#shown = '';
  }

  get #erasing(): string {
    return this.#shown === '' ? '' : `\r${LINES_UP(this.#shown.split('\n').length - 1)}${CLEAR_BELOW}`;
  }
}

/** A bar of `columns` columns, filled by a share from 0 to 1. */
export function bar(share: number, columns: number): string {
  const full = Math.floor(Math.min(1, share) * columns);
  return '█'.repeat(full) + '░'.repeat(columns - full);
}
