/**
 * The numbers of all lines that are like one: `step 10 residual 6.6e-3`, or a row of a CSV file. Alike are lines with the
 * same words around as many numbers.
 */
import { setImmediate as otherWork } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';
import type { NumbersLine } from '../contract/addresses.ts';
import { Refused } from '../refused.ts';
import { type Content, NEWLINE, SLICE_BYTES, type Source } from './content.ts';

/**
 * Each part ends where its digits do, so that no line makes it try them in many ways. What numbers look like in what jobs write, with a unit behind them (`12.5s`); not within a word or an id (`node-7`,
 * `v1.2.3`, `a_1`).
 */
const NUMBER =
  /(?<![\p{L}\p{N}_.]|\p{L}-)[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?![0-9])(?:[eEdD][+-]?[0-9]+)?(?=\p{L}{0,3}(?![\p{L}\p{N}_]|\.[0-9]))|(?:nan|inf(?:inity)?)(?![\p{L}\p{N}_]))/giu;
/** The same where all is ASCII, which most of any log is: ten times as quick. */
const ASCII_NUMBER =
  /(?<![A-Za-z0-9_.]|[A-Za-z]-)[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?![0-9])(?:[eEdD][+-]?[0-9]+)?(?=[A-Za-z]{0,3}(?![A-Za-z0-9_]|\.[0-9]))|(?:nan|inf(?:inity)?)(?![A-Za-z0-9_]))/gi;
const ASCII = /^[\t -~\r]*$/;

/** The time of a line is no number of it. */
const TIME =
  /\b(?:\d{4}[-/]\d\d[-/]\d\d[T ]?)?\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?|\b\d{4}[-/]\d\d[-/]\d\d\b/g;
/** A longer line is none of numbers. */
const MAX_LINE_BYTES = 4096;
const MAX_COLUMNS = 32;
const MAX_NAME = 40;
/** White space, around one number or none. */
const SPACES = /[ \t]+\0?[ \t]*|\0[ \t]+/g;

/** What lines that are alike have in common. */
export interface Shape {
  /** The text between the numbers. */
  readonly words: string;
  readonly columns: readonly string[];
}

/** The shape of a line; undefined if it has no numbers. `head` is the line that a CSV file begins with. */
export function shapeOf(line: string, head: string): Shape | undefined {
  const { words, values } = taken(line);
  if (values.length === 0 || values.length > MAX_COLUMNS) return undefined;
  const heads = head.split(/[,;\t]/);
  const isHead = heads.length === values.length && taken(head).values.length === 0 && /^[,;\t\s\0]+$/.test(words);
  const columns = words.split('\0').slice(0, -1);
  return { words, columns: columns.map((before, index) => nameOf(isHead ? (heads[index] ?? '') : before, index)) };
}

/** The last word before a number, with what stands in parentheses behind it. */
function nameOf(text: string, index: number): string {
  const last = [...text.matchAll(/[\p{L}_][\p{L}\p{N}_.-]*(?:[ \t]?\([^()]*\))?/gu)].at(-1);
  const isLast = last !== undefined && !/[\p{L}\p{N}]/u.test(text.slice(last.index + last[0].length));
  return isLast ? last[0].slice(0, MAX_NAME) : `#${index + 1}`;
}

/** The numbers of a line, and what stands around them: each one as NUL, and spaces as one. */
function taken(line: string): { readonly words: string; readonly values: readonly number[] } {
  // Only what is there is looked for: lines are many.
  const seen = line.includes('\u001b') ? stripVTControlCharacters(line) : line;
  const isAscii = ASCII.test(seen);
  const whole = isAscii ? seen : seen.replaceAll('\0', ' ');
  const text = (whole.includes(':') || whole.includes('-') ? whole.replaceAll(TIME, '@') : whole).trim();
  const values: number[] = [];
  const words = text.replace(isAscii ? ASCII_NUMBER : NUMBER, (number) => {
    values.push(numberFrom(number));
    return '\0';
  });
  return { words: words.replaceAll(SPACES, (spaces) => (spaces.includes('\0') ? '\0' : ' ')), values };
}

/** Fortran writes 1.0D+03. Numbers that are none, or endless, are not plotted. */
const numberFrom = (text: string) => {
  const number = Number(text);
  return Number.isNaN(number) ? Number(text.replace(/[dD]/, 'e')) : number;
};

/** The line that a byte is in, and the first one. @throws Refused (400) */
export function shapeAt(source: Source, byte: number): Shape {
  const before = source.read(Math.max(0, byte - MAX_LINE_BYTES), byte);
  const start = byte - before.length + before.lastIndexOf(NEWLINE) + 1;
  const shape = shapeOf(lineFrom(source, start), lineFrom(source, 0));
  if (shape === undefined) throw new Refused(400, 'this line has no numbers');
  return shape;
}

function lineFrom(source: Source, start: number): string {
  const bytes = source.read(start, Math.min(source.bytes, start + MAX_LINE_BYTES));
  const end = bytes.indexOf(NEWLINE);
  return bytes.toString('utf8', 0, end < 0 ? bytes.length : end);
}

/** Rows of one slice: where each line begins, and its numbers; null for one that is not finite. */
interface Rows {
  readonly at: readonly number[];
  readonly rows: readonly (readonly (number | null)[])[];
  /** All lines before this byte were looked at. */
  readonly to: number;
}

/** The numbers of the whole lines from `start` on, which begins one. */
export async function* numbersOf(source: Source, shape: Shape, start: number): AsyncGenerator<Rows> {
  for (let at = start; at < source.bytes; ) {
    const slice = source.readShared(at, Math.min(source.bytes, at + SLICE_BYTES));
    const end = slice.lastIndexOf(NEWLINE) + 1;
    // The last line may have no end yet.
    if (end === 0 && at + slice.length === source.bytes) return;
    yield { ...rowsIn(slice.subarray(0, end), at, shape), to: at + (end || slice.length) };
    at += end || slice.length;
    await otherWork();
  }
}

function rowsIn(lines: Buffer, begin: number, shape: Shape): Omit<Rows, 'to'> {
  const at: number[] = [];
  const rows: (number | null)[][] = [];
  for (let start = 0; start < lines.length; ) {
    const end = lines.indexOf(NEWLINE, start);
    const found = end - start > MAX_LINE_BYTES ? undefined : taken(lines.toString('utf8', start, end));
    if (found?.words === shape.words) {
      at.push(begin + start);
      rows.push(found.values.map((value) => (Number.isFinite(value) ? value : null)));
    }
    start = end + 1;
  }
  return { at, rows };
}

const MAX_ROWS = 50_000;

/** Rows for a plot: beyond so many, only each second one is sent, then each fourth, ... */
export async function* thinnedRows(content: Content, shape: Shape, from: number): AsyncGenerator<NumbersLine> {
  yield { columns: shape.columns, version: content.version };
  let seen = 0;
  let reported = 0;
  let every = 1;
  let to = from;
  for await (const slice of numbersOf(content, shape, from)) {
    to = slice.to;
    const kept = slice.at
      .map((_, index) => index)
      .filter(() => {
        const isReported = seen++ % every === 0;
        if (isReported && ++reported >= MAX_ROWS) {
          reported = 0;
          every *= 2;
        }
        return isReported;
      });
    if (kept.length > 0)
      yield { at: kept.map((index) => slice.at[index] ?? 0), rows: kept.map((index) => slice.rows[index] ?? []) };
  }
  yield { done: true, to, rows: seen, every };
}
