/** Output for a terminal: safe text that fits, tables, and lines that stay below the scrolling ones. */
import type { WriteStream } from 'node:tty';
import Table from 'cli-table3';
import stringWidth from 'string-width';
import { slicesOf } from '../../slices.ts';
import { hasColours, pc } from './colours.ts';

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
    // Control characters, and characters that change the direction of text.
    '[\\p{Cc}\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069]',
  ].join('|'),
  'gu',
);

/** One safe line; colours are kept if the terminal has them. */
export function terminalText(line: string, colours = hasColours): string {
  const text = line
    .replaceAll('\t', '  ')
    .replaceAll(NOT_TEXT, (_, colour?: string) => (colours ? (colour ?? '') : ''));
  return text.includes(ESC) ? `${text}${RESET}` : text;
}

const COLOUR = new RegExp(`(${ESC}\\[[0-9;:]*m)`);
const CHARACTERS = new Intl.Segmenter();

/** An ellipsis replaces what is cut. */
export function cutToColumns(text: string, maxColumns: number): string {
  if (stringWidth(text) <= maxColumns) return text;
  const parts = text.split(COLOUR).flatMap((part, index) =>
    // Every second part is a colour.
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
 * Wraps a text between words, with the indent of its first line. Not by wrap-ansi, which composes characters: the name
 * of a file would differ from the one on the disk.
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

/** No rules between rows, so that many rows fit on one screen. */
const BETWEEN_ROWS = { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' };

/** The time for drawing a table grows with the square of its rows. */
const ROWS_AT_A_TIME = 50;

interface Fitted {
  readonly head: readonly string[];
  readonly rows: readonly string[][];
  readonly numbers?: readonly string[];
}

/** A table, or lines on a terminal that is too narrow for it. */
export function fitted({ head, rows, numbers = [] }: Fitted, columns: number): readonly string[] {
  const colAligns = head.map((name) => (numbers.includes(name) ? 'right' : 'left'));
  const colWidths = widthsOf([head, ...rows]);
  const drawn = (some: readonly (readonly string[])[], ofHead: readonly string[]) => {
    const table = new Table({ head: [...ofHead], style: plainStyle(), chars: BETWEEN_ROWS, colAligns, colWidths });
    table.push(...some.map((row) => [...row]));
    return table.toString().split('\n');
  };
  const [top = '', names = '', bottom = ''] = drawn([], head);
  if (stringWidth(top) > columns) return rows.flatMap((row) => narrowLines(head, row));
  const below = top.replace('┌', '├').replace('┐', '┤').replaceAll('┬', '┼');
  return [top, names, below, ...slicesOf(rows, ROWS_AT_A_TIME).flatMap((some) => drawn(some, []).slice(1, -1)), bottom];
}

/** The first two cells, and below them the others, each after its name. */
function narrowLines(head: readonly string[], [first = '', second = '', ...rest]: readonly string[]): string[] {
  const named = rest.flatMap((text, index) => (text === '' ? [] : [`${head[index + 2]} ${text}`]));
  return [`${pc.bold(first)} ${second}`, ...(named.length === 0 ? [] : [`  ${named.join('; ')}`])];
}

function widthsOf(rows: readonly (readonly string[])[]): number[] {
  const widths: number[] = [];
  for (const row of rows)
    for (const [column, text] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, stringWidth(text) + 2);
  return widths;
}

export const pageText = (lines: readonly string[], columns: number): string =>
  `${lines.flatMap((line) => (isOfTable(line) ? [line] : wrapToColumns(line, columns))).join('\n')}\n`;

/** Infinity where the standard output is no terminal, or one that does not report its size. */
export const columnsOfTerminal = (): number =>
  process.stdout.isTTY ? process.stdout.columns || Number.POSITIVE_INFINITY : Number.POSITIVE_INFINITY;

const isOfTable = (line: string) => /[─│]/.test(line);

const plainStyle = () => (hasColours ? { head: ['bold'], border: ['gray'] } : { head: [], border: [] });

const CLEAR_BELOW = '\u001b[J';
const LINES_UP = (lines: number) => (lines === 0 ? '' : `\u001b[${lines}A`);

export type Terminal = Pick<WriteStream, 'write'> & Partial<Pick<WriteStream, 'isTTY' | 'columns'>>;

export class BottomLines {
  readonly #stream: Terminal;
  #shown = '';

  constructor(stream: Terminal) {
    this.#stream = stream;
  }

  write(lines: string): void {
    this.#stream.write(`${this.#erasing}${lines}${this.#shown}`);
  }

  /** Sets the lines that stay below, each cut to the width of the terminal. */
  show(lines: readonly string[]): void {
    if (this.#stream.isTTY !== true) return;
    const columns = (this.#stream.columns || 80) - 1;
    const shown = lines.map((line) => cutToColumns(line, columns)).join('\n');
    if (shown === this.#shown) return;
    this.#stream.write(`${this.#erasing}${shown}`);
    this.#shown = shown;
  }

  clear(): void {
    this.#stream.write(this.#erasing);
    this.#shown = '';
  }

  /** Leaves the lines on the terminal, with the cursor below them. */
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
