/** The lines around places of a content: what a search that shows only these has on the page. */
import { characterStart, endOfWholeUtf8 } from '../../bytes.ts';
import { NEWLINE, type Source } from './content.ts';

/** Of a place, to each side. */
const REACH_BYTES = 64 * 1024;
/** Of a longer line, this much is shown, ... */
const MAX_LINE_BYTES = 4 * 1024;
/** ... from so much before the place on. */
const BEFORE_PLACE_BYTES = 1024;

interface LinesAround {
  /** Other lines are between them and those of the place before. */
  readonly isApart: boolean;
  /** Consecutive lines, without their ends. */
  readonly lines: readonly { readonly at: number; readonly bytes: Buffer }[];
}

/** The line of each place with so many lines before and after it; each line once. Places are in order. */
export function* linesAround(source: Source, places: readonly number[], context: number): Generator<LinesAround> {
  let done: number | undefined;
  for (const place of places) {
    const first = startBefore(source, place, context);
    const start = Math.max(first, done ?? 0);
    const end = Math.max(start, endAfter(source, place, context));
    yield { isApart: done !== undefined && first > done, lines: [...linesOf(source.read(start, end), start, place)] };
    done = end;
  }
}

function startBefore(source: Source, place: number, context: number): number {
  const first = Math.max(0, place - REACH_BYTES);
  const before = source.read(first, place);
  let start = before.length;
  for (let line = 0; line <= context; line++) {
    const newline = before.subarray(0, line === 0 ? start : start - 1).lastIndexOf(NEWLINE);
    if (newline < 0) return line === 0 || first === 0 ? first : first + start;
    start = newline + 1;
  }
  return first + start;
}

function endAfter(source: Source, place: number, context: number): number {
  const last = Math.min(source.bytes, place + REACH_BYTES);
  const after = source.read(place, last);
  let end = 0;
  for (let line = 0; line <= context; line++) {
    const newline = after.indexOf(NEWLINE, end);
    if (newline < 0) return line === 0 || last === source.bytes ? last : place + end;
    end = newline + 1;
  }
  return place + end;
}

function* linesOf(bytes: Buffer, start: number, place: number): Generator<{ at: number; bytes: Buffer }> {
  for (let at = 0; at < bytes.length; ) {
    const newline = bytes.indexOf(NEWLINE, at);
    const end = newline < 0 ? bytes.length : newline;
    const within = place - start;
    const isLong = end - at > MAX_LINE_BYTES;
    const from = isLong && within > at && within <= end ? Math.max(at, within - BEFORE_PLACE_BYTES) : at;
    const shown = isLong ? characterStart(bytes, from) : from;
    const line = bytes.subarray(shown, Math.min(end, shown + MAX_LINE_BYTES));
    yield { at: start + shown, bytes: isLong ? line.subarray(0, endOfWholeUtf8(line, 1)) : line };
    at = end + 1;
  }
}
