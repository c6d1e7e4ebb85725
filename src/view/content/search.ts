/**
 * Searches a content for a pattern, slice by slice. A text becomes an expression over bytes
 * (each one as the character of its number), in which every character is the choice of its ways of being written, each
 * as UTF-8: no repetition, so nothing can run away, and an index is a byte. An expression of a person runs over the
 * text of each line, in a thread, and only for so long.
 */
import { isUtf8 } from 'node:buffer';
import { setImmediate as otherWork } from 'node:timers/promises';
import { characterStart, endOfWholeUtf8, firstCharacter, NEWLINE } from '../../bytes.ts';
import { Refused } from '../../http/refused.ts';
import { expressionThread } from '../../search/guarded-thread.ts';
import type { SearchLine } from '../contract/addresses.ts';
import { type FileContent, SLICE_BYTES, type Source } from './content.ts';

export interface PatternOptions {
  readonly text: string;
  readonly matchCase: boolean;
  readonly isExpression: boolean;
}

export type ByteMatch = readonly [byte: number, length: number];

/** Matches that begin at or behind `from`; `bytes` are lines, or a piece of one, and positions count from them. */
export interface ContentPattern {
  find(bytes: Buffer, from: number): ByteMatch[] | Promise<ByteMatch[]>;
  /** Ends its thread, if it has one. */
  close(): void;
}

const MAX_CHARACTERS = 256;

/** @throws Refused (400) */
export function patternOf(options: PatternOptions): ContentPattern {
  const { text, matchCase, isExpression } = options;
  if (text === '' || text.length > MAX_CHARACTERS || /[\r\n]/.test(text))
    throw new Refused(400, `what is looked for has 1 to ${MAX_CHARACTERS} characters, on one line`);
  if (!isExpression) return textPattern(options);
  return expressionPattern(text, matchCase);
}

function textPattern({ text, matchCase }: PatternOptions): ContentPattern {
  const characters = [...text].map((character) => oneOf(matchCase ? [character] : waysOf(character)));
  const expression = new RegExp(characters.join(''), 'g');
  const find = (bytes: Buffer, from: number) => {
    expression.lastIndex = from;
    const matches = bytes.toString('latin1').matchAll(expression);
    return Array.from(matches, ({ 0: match, index }): ByteMatch => [index, match.length]);
  };
  return { find, close: () => {} };
}

const oneOf = (ways: readonly string[]) => `(?:${[...new Set(ways.map(bytesOf))].join('|')})`;

function waysOf(character: string): string[] {
  const large = character.toUpperCase();
  return [character, character.toLowerCase(), large, large.toLowerCase()];
}

const bytesOf = (text: string) =>
  [...Buffer.from(text)].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('');

/** @throws Refused (400) */
export function expressionPattern(source: string, matchCase = false): ContentPattern {
  const flags = matchCase ? 'gmu' : 'gimu';
  try {
    new RegExp(source, flags);
  } catch {
    throw new Refused(400, 'this is no regular expression');
  }
  const thread = expressionThread();
  const find = async (bytes: Buffer, from: number) => {
    const pieces = textsOf(bytes, from);
    const work = { source, flags, texts: pieces.map(({ text }) => text), from: pieces.map((piece) => piece.from) };
    const found = await thread.ask(work);
    if (found === undefined)
      throw new Refused(400, 'this expression takes too long, or too much memory', {
        hint: 'write it without a repetition inside of another one',
      });
    return pieces.flatMap((piece, index) => inBytes(found[index] ?? [], piece));
  };
  return { find, close: () => void thread.close() };
}

/** Text of bytes from `start` on, in which matches are wanted that begin at or behind `from`. */
interface ReadPiece {
  readonly start: number;
  readonly text: string;
  readonly encoding: 'utf8' | 'latin1';
  readonly from: number;
}

/** All of the bytes if they are text, else each line; one that is none, as if each byte were a character. */
function textsOf(bytes: Buffer, from: number): ReadPiece[] {
  const piece = (start: number, end: number): ReadPiece => {
    const encoding = isUtf8(bytes.subarray(start, end)) ? 'utf8' : 'latin1';
    const before = bytes.toString(encoding, start, Math.max(start, Math.min(from, end)));
    return { start, encoding, text: bytes.toString(encoding, start, end), from: before.length };
  };
  if (isUtf8(bytes)) return [piece(0, bytes.length)];
  const pieces: ReadPiece[] = [];
  for (let start = 0; start < bytes.length; ) {
    const end = bytes.indexOf(NEWLINE, start) + 1 || bytes.length;
    if (end > from) pieces.push(piece(start, end));
    start = end;
  }
  return pieces;
}

/** Indexes and lengths in a text, one after the other, as those in the bytes. */
function inBytes(found: readonly number[], { start, text, encoding }: ReadPiece): ByteMatch[] {
  const matches: ByteMatch[] = [];
  let byte = start;
  let at = 0;
  for (let each = 0; each < found.length; each += 2) {
    const index = found[each] ?? 0;
    const end = index + (found[each + 1] ?? 0);
    byte += Buffer.byteLength(text.slice(at, index), encoding);
    const length = Buffer.byteLength(text.slice(index, end), encoding);
    if (length > 0) matches.push([byte, length]);
    byte += length;
    at = end;
  }
  return matches;
}

/** A slice that was looked through, up to `searched`. */
interface Searched {
  readonly matches: readonly ByteMatch[];
  readonly searched: number;
}

/** A match near the edge of a slice, in a line that is longer than one, is found by what is read twice. */
const OVERLAP_BYTES = 4096;
/** Of what stands before a slice, for the beginning of a word: a character at least. */
const BEFORE_BYTES = 7;

/** Other requests wait for so long. */
const TURN_MS = 5;

/** All matches from `start` on, in order, each once. */
export async function* searchForward(source: Source, pattern: ContentPattern, start: number): AsyncGenerator<Searched> {
  let turnAt = performance.now();
  // None begins within another one.
  let from = start;
  for (let at = start; at < source.bytes; ) {
    const first = Math.max(0, at - BEFORE_BYTES);
    const read = source.readShared(first, Math.min(source.bytes, at + SLICE_BYTES));
    const skipped = first === 0 ? 0 : firstCharacter(read);
    const slice = read.subarray(skipped);
    const begin = first + skipped;
    const { end, sure } = edgesOf(slice, begin + slice.length === source.bytes);
    const matches: ByteMatch[] = [];
    for (const [byte, length] of await pattern.find(slice.subarray(0, end), Math.max(at, from) - begin)) {
      if (byte >= sure) break;
      matches.push([begin + byte, length]);
      from = begin + byte + length;
    }
    at = begin + sure;
    yield { matches, searched: at };
    if (performance.now() - turnAt < TURN_MS) continue;
    await otherWork();
    turnAt = performance.now();
  }
}

/** Where a slice is cut, and up to where it is sure what begins in it: in a cut line, the next slice sees more. */
function edgesOf(slice: Buffer, isEnd: boolean): { readonly end: number; readonly sure: number } {
  const lines = isEnd ? slice.length : slice.lastIndexOf(NEWLINE) + 1;
  if (isEnd || lines > BEFORE_BYTES) return { end: lines, sure: lines };
  return { end: endOfWholeUtf8(slice, 1), sure: characterStart(slice, slice.length - OVERLAP_BYTES) };
}

const MAX_LISTED = 10_000;
const REPORT_MS = 150;

/** The matches from a byte on, or up to `max` of them, as they are found; the first ones are listed. */
export async function* matchesOf(
  content: FileContent,
  pattern: ContentPattern,
  {
    from = 0,
    max = Number.POSITIVE_INFINITY,
  }: { readonly from?: number | undefined; readonly max?: number | undefined },
): AsyncGenerator<SearchLine> {
  const { bytes: of, version } = content;
  let count = 0;
  let reported = 0;
  let unreported: ByteMatch[] = [];
  let reportedAt = performance.now();
  try {
    for await (const { matches, searched } of searchForward(content, pattern, from)) {
      const wanted = matches.slice(0, max - count);
      count += wanted.length;
      unreported.push(...wanted.slice(0, MAX_LISTED - reported - unreported.length));
      if (count === max) break;
      if (performance.now() - reportedAt < REPORT_MS) continue;
      reportedAt = performance.now();
      if (unreported.length > 0) yield { at: unreported };
      reported += unreported.length;
      unreported = [];
      yield { searched, of, count };
    }
    if (unreported.length > 0) yield { at: unreported };
    if (count < max) yield { searched: of, of, count };
    yield { done: true, count, version };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    yield { done: true, count: 0, version: error.version ?? version, cut: error.message };
  } finally {
    pattern.close();
  }
}
