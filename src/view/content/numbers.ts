/** The numbers of all lines with the same words around them: `step 10 residual 6.6e-3`, or rows of a CSV file. */
import { setImmediate as otherWork } from 'node:timers/promises';
import { NEWLINE } from '../../bytes.ts';
import { Refused } from '../../http/refused.ts';
import { MAX_LINE_BYTES, numbersIn, type Shape, shapeOf } from '../../number-lines.ts';
import type { NumbersLine } from '../contract/addresses.ts';
import { type FileContent, SLICE_BYTES, type Source } from './content.ts';

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
async function* numbersOf(source: Source, shape: Shape, start: number): AsyncGenerator<Rows> {
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
    const found = end - start > MAX_LINE_BYTES ? undefined : numbersIn(lines.toString('utf8', start, end));
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
export async function* thinnedRows(content: FileContent, shape: Shape, from: number): AsyncGenerator<NumbersLine> {
  yield { columns: shape.columns, version: content.version };
  let seen = 0;
  let reported = 0;
  let every = 1;
  let to = from;
  for await (const slice of numbersOf(content, shape, from)) {
    to = slice.to;
    const before = seen;
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
      yield {
        index: kept.map((index) => before + index),
        at: kept.map((index) => slice.at[index] ?? 0),
        rows: kept.map((index) => slice.rows[index] ?? []),
      };
  }
  yield { done: true, to, count: seen };
}
