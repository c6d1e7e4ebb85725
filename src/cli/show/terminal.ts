/** Output for a terminal: colours, safe text that fits, tables, and lines that stay below the scrolling ones. */
import type { WriteStream } from 'node:tty';
import { stripVTControlCharacters } from 'node:util';
import picocolors from 'picocolors';
import stringWidth from 'string-width';
import { INVISIBLE_IN_TEXT } from '../../printable.ts';

/** Whether a stream gets colours: a terminal, unless `--no-color` or `NO_COLOR` is set; `FORCE_COLOR` sets them. */
export function hasColours(
  { isTTY = false }: { readonly isTTY?: boolean },
  { env, argv }: Pick<NodeJS.Process, 'env' | 'argv'> = process,
): boolean {
  const { NO_COLOR = '', FORCE_COLOR = '', TERM } = env;
  if (NO_COLOR !== '' || FORCE_COLOR === '0' || argv.includes('--no-color')) return false;
  return FORCE_COLOR !== '' || (isTTY && TERM !== 'dumb');
}

/** For the standard output. */
export const pc = picocolors.createColors(hasColours(process.stdout));

/** A text for the standard error, whose colours are those of the standard output. */
export const forStderr = (text: string): string => (hasColours(process.stderr) ? text : stripVTControlCharacters(text));

export const ESC = '\u001b';
const BEL = '\u0007';
const RESET = `${ESC}[0m`;

/** A colour (SGR), as the first group; any other escape sequence, complete or not; as the second group, what is invisible. */
const NOT_TEXT = new RegExp(
  [
    `(${ESC}\\[[0-9;:]*m)`,
    `${ESC}\\[[0-?]*[ -/]*[@-~]?`,
    `${ESC}[\\]PX^_][^${BEL}${ESC}]*(?:${BEL}|${ESC}\\\\)?`,
    `${ESC}[ -/]*[0-~]?`,
    String.raw`\p{Cc}`,
    `(${INVISIBLE_IN_TEXT})`,
  ].join('|'),
  'gu',
);

/** One safe line; invisible characters are marked as on the page, and colours are kept if the terminal has them. */
export function terminalText(line: string, colours = hasColours(process.stdout)): string {
  const text = line
    .replaceAll('\t', '  ')
    .replaceAll(NOT_TEXT, (_, colour = '', invisible = '') => (colours ? colour : '') + markOf(invisible));
  return text.includes(ESC) ? `${text}${RESET}` : text;
}

/** `<U+200B>`: without it, `pass` and `word` around that character look like one word. */
function markOf(character: string): string {
  const code = character.codePointAt(0);
  return code === undefined ? '' : `<U+${code.toString(16).toUpperCase().padStart(4, '0')}>`;
}

const COLOUR = new RegExp(`(${ESC}\\[[0-9;:]*m)`);
const EACH_COLOUR = new RegExp(COLOUR, 'g');
/** Of the colours of picocolors. */
const ENDS_COLOUR = new RegExp(`^${ESC}\\[(?:0|22|39)?m$`);

/** Most texts are ASCII. */
const widthOf = (text: string) => (/^[ -~]*$/.test(text) ? text.length : stringWidth(text));

/** An ellipsis replaces what is cut. */
export function cutToColumns(text: string, maxColumns: number): string {
  if (widthOf(text) <= maxColumns) return text;
  const characters = new Intl.Segmenter();
  const parts = text.split(COLOUR).flatMap((part, index) =>
    // Every second part is a colour.
    index % 2 === 1 ? [part] : Array.from(characters.segment(part), ({ segment }) => segment),
  );
  let columns = 0;
  const end = parts.findIndex((part) => {
    columns += widthOf(part);
    return columns >= maxColumns;
  });
  const shown = parts.slice(0, end).join('');
  return `${shown}${shown.includes(ESC) ? RESET : ''}…`;
}

/**
 * Wraps a text between words, with the indent of its first line and `hanging` more columns from the second line on. Not
 * by wrap-ansi, which composes characters: the name of a file would differ from the one on the disk.
 */
export function wrapToColumns(text: string, maxColumns: number, hanging = 0): string[] {
  if (widthOf(text) <= maxColumns) return [text];
  const [indent = ''] = /^ */.exec(text) ?? [];
  const lines: string[] = [];
  let line = '';
  for (const word of text.trimStart().split(' ')) {
    const start = indent + (lines.length > 0 ? ' '.repeat(hanging) : '');
    const longer = line === '' ? `${start}${word}` : `${line} ${word}`;
    if (line !== '' && widthOf(longer) > maxColumns) {
      lines.push(line);
      line = `${indent}${' '.repeat(hanging)}${word}`;
    } else line = longer;
  }
  return colouredEach([...lines, line]);
}

/** Lines of a coloured text, each with the colour that it begins in. */
function colouredEach(lines: readonly string[]): string[] {
  let open = '';
  return lines.map((line) => {
    const before = open;
    for (const [colour] of line.matchAll(EACH_COLOUR)) open = ENDS_COLOUR.test(colour) ? '' : colour;
    return `${before}${line}${open === '' ? '' : RESET}`;
  });
}

/** Whether the locale has characters beyond ASCII. */
export const isUnicode = (env: NodeJS.ProcessEnv = process.env): boolean =>
  /utf-?8/i.test(env['LC_ALL'] || env['LC_CTYPE'] || env['LANG'] || '');

/** Without a terminal, and on one that does not report its width, those of `COLUMNS`, else Infinity. */
export function columnsOf(
  { isTTY = false, columns }: Partial<WriteStream> = process.stdout,
  env = process.env,
): number {
  return (isTTY ? columns : Number(env['COLUMNS'])) || Number.POSITIVE_INFINITY;
}

interface Fitted {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
  readonly numbers?: readonly string[];
}

const BETWEEN = '  ';

/** A table without rules and empty columns. If it is too wide, columns are wrapped at words, or rows become lines. */
export function fitted({ head: all, rows: allRows, numbers = [] }: Fitted, columns: number): readonly string[] {
  const used = all.map((_, column) => allRows.length === 0 || allRows.some((row) => (row[column] ?? '') !== ''));
  const [head = [], ...rows] = [all, ...allRows].map((row) => row.filter((_, column) => used[column]));
  const widths = widthsWithin(columns - BETWEEN.length * (head.length - 1), [head, ...rows]);
  if (widths === undefined) return rows.flatMap((row) => narrowLines(head, row, columns));
  const drawn = (row: readonly string[], change = (text: string) => text) => {
    const cells = row.map((text, column) => wrapToColumns(text, widths[column] ?? 0));
    return Array.from({ length: Math.max(...cells.map(({ length }) => length)) }, (_, line) => {
      const parts = cells.map((lines, column) => {
        const text = lines[line] ?? '';
        const blank = ' '.repeat(Math.max(0, (widths[column] ?? 0) - widthOf(text)));
        return numbers.includes(head[column] ?? '') ? `${blank}${change(text)}` : `${change(text)}${blank}`;
      });
      return parts.join(BETWEEN).trimEnd();
    });
  };
  return [...drawn(head, pc.bold), ...rows.flatMap((row) => drawn(row))];
}

/** The widths of the columns; the widest is the first that is made narrower. Undefined if not even the words fit. */
function widthsWithin(room: number, rows: readonly (readonly string[])[]): number[] | undefined {
  const widths: number[] = [];
  const words: number[] = [];
  for (const row of rows) {
    for (const [column, text] of row.entries()) {
      widths[column] = Math.max(widths[column] ?? 0, widthOf(text));
      if (room === Number.POSITIVE_INFINITY) continue;
      words[column] = Math.max(words[column] ?? 0, ...text.split(' ').map((word) => widthOf(word)));
    }
  }
  for (let over = sumOf(widths) - room; over > 0; over--) {
    const [widest] = [...widths.keys()]
      .filter((column) => (widths[column] ?? 0) > (words[column] ?? 0))
      .sort((a, b) => (widths[b] ?? 0) - (widths[a] ?? 0));
    if (widest === undefined) return undefined;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}

const sumOf = (numbers: readonly number[]) => numbers.reduce((sum, number) => sum + number, 0);

/** The first two cells, and below them the others, each after its name. */
function narrowLines(
  head: readonly string[],
  [first = '', second = '', ...rest]: readonly string[],
  columns: number,
): string[] {
  const named = rest.flatMap((text, index) => (text === '' ? [] : [`${head[index + 2]} ${text}`]));
  const more = named.length === 0 ? [] : wrapToColumns(`  ${named.join('; ')}`, columns);
  return [`${pc.bold(first)} ${second}`, ...more];
}

/** A table fits already. */
export const pageText = (lines: readonly string[], columns: number): string =>
  `${lines.flatMap((line) => wrapToColumns(line, columns, 2)).join('\n')}\n`;

export const CLEAR_BELOW = '\u001b[J';
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
  const [done, open] = isUnicode() ? ['█', '░'] : ['#', '.'];
  return done.repeat(full) + open.repeat(columns - full);
}
