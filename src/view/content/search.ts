/** Looks through a content for a pattern, slice by slice, forwards or backwards. */
import { setImmediate as otherWork } from 'node:timers/promises';
import { characterStart, endOfWholeUtf8, firstCharacter } from '../../bytes.ts';
import { SLICE_BYTES, type Source } from './content.ts';
import type { Match, Pattern } from './pattern.ts';
import { NEWLINE } from './window.ts';

/** A slice that was looked through: up to `searched` (from the other side, down to it). */
export interface Searched {
  readonly matches: readonly Match[];
  readonly searched: number;
}

/** A match near the edge of a slice, in a line that is longer than one, is found by what is read twice. */
const OVERLAP_BYTES = 4096;
/** Of what stands before a slice, for the beginning of a word: a character at least. */
const BEFORE_BYTES = 7;

/** All matches from `start` on, in order, each once. */
export async function* searchForward(source: Source, pattern: Pattern, start: number): AsyncGenerator<Searched> {
  // None begins within another one.
  let from = start;
  for (let at = start; at < source.bytes; ) {
    const first = Math.max(0, at - BEFORE_BYTES);
    const read = source.look(first, Math.min(source.bytes, at + SLICE_BYTES));
    const skipped = first === 0 ? 0 : firstCharacter(read);
    const slice = read.subarray(skipped);
    const begin = first + skipped;
    const { end, sure } = edgesOf(slice, begin + slice.length === source.bytes);
    const matches: Match[] = [];
    for (const [byte, length] of pattern(slice.subarray(0, end), Math.max(at, from) - begin)) {
      if (byte >= sure) break;
      matches.push([begin + byte, length]);
      from = begin + byte + length;
    }
    at = begin + sure;
    yield { matches, searched: at };
    await otherWork();
  }
}

/** Where a slice is cut, and up to where it is sure what begins in it: in a cut line, the next slice sees more. */
function edgesOf(slice: Buffer, isEnd: boolean): { readonly end: number; readonly sure: number } {
  const lines = isEnd ? slice.length : slice.lastIndexOf(NEWLINE) + 1;
  if (isEnd || lines > BEFORE_BYTES) return { end: lines, sure: lines };
  return { end: endOfWholeUtf8(slice, 1), sure: characterStart(slice, slice.length - OVERLAP_BYTES) };
}

/** The last match that begins before `end`; undefined if there is none. */
export async function searchBackward(source: Source, pattern: Pattern, end: number): Promise<Match | undefined> {
  for (let before = end; before > 0; ) {
    const start = Math.max(0, before - SLICE_BYTES);
    let last: Match | undefined;
    // From a line on, if there is one: a pattern takes whole lines.
    const from = lineFrom(source, start, before);
    for await (const { matches, searched } of searchForward(source, pattern, from)) {
      last = matches.findLast(([byte]) => byte < before) ?? last;
      if (searched >= before) break;
    }
    if (last !== undefined) return last;
    before = from;
  }
  return undefined;
}

/** Where the first line begins in [start, end); `start` if none does. */
function lineFrom(source: Source, start: number, end: number): number {
  if (start === 0) return 0;
  const newline = source.read(start - 1, end).indexOf(NEWLINE);
  const from = start + newline;
  return newline < 0 || from >= end ? start : from;
}
