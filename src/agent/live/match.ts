/**
 * Compares the text of a response with known bytes: a mirror, or raw bytes. Where the text has no U+FFFD, bytes are
 * compared with bytes. U+FFFD stand for bytes beyond ASCII: undecodable ones, those of an inexact range, or a character
 * that the edge of a block or a short read cuts. How many they are depends on the runtime of the server, and proves
 * nothing: at most one for each byte, and at least one for three. The known bytes show where the text goes on.
 */
import { isUtf8 } from 'node:buffer';
import { commonLength, startsAlike, widthOfLead } from '../../bytes.ts';
import type { Reading } from './text/reading.ts';

/** Bytes with a position: a mirror, or raw bytes in memory. */
export interface Bytes {
  read(start: number, end: number): Promise<Buffer>;
  /** Where the inexact range ends that covers a position; undefined if none does. */
  unknownUntil?(position: number): number | undefined;
}

/**
 * same: nothing in the text contradicts the bytes, and the reading is at their end. If `open`, they end inside the U+FFFD
 * at `at`, and how many of these stand for them is uncertain. shorter: the text ends at `at`. different: the byte at `at`
 * is another one.
 */
export type Match = { readonly kind: 'same'; readonly at: number; readonly open: boolean } | Difference;

export interface Difference {
  readonly kind: 'shorter' | 'different';
  readonly at: number;
}

/** The bytes [from, to); `offset` is the requested offset of the text, at or before `from` (default: `from`). */
interface Stretch {
  readonly from: number;
  readonly to: number;
  readonly offset?: number;
}

/** A character that a block edge cuts in one response is whole in one that was requested this much later. */
export const HALF_BLOCK_BYTES = 512;
/** Bytes at the start of a response without a block edge. */
export const WITHIN_BLOCK_BYTES = 480;
const STEP_BYTES = 64 * 1024;
const LOOKAHEAD_BYTES = 4 * 1024;
/** Bytes after U+FFFD that must be equal. */
const RESUME_BYTES = 64;
const MAX_BYTES_A_REPLACEMENT = 3;
/** Where only the ASCII characters of a text count, another one may stand for so many bytes. */
const MAX_BYTES_A_CHARACTER = 4;

/** Calls `onUnshown` with each stretch of bytes that the text does not show. */
export async function match(
  reading: Reading,
  bytes: Bytes,
  { from, to, offset = from }: Stretch,
  onUnshown: (start: number, end: number) => void = () => {},
): Promise<Match> {
  let at = from;
  while (at < to) {
    const read = await reading.peek(Math.min(STEP_BYTES, to - at));
    if (read.length > 0) {
      const there = await bytes.read(at, at + read.length);
      const common = commonLength(read, there);
      reading.advance(common);
      at += common;
      if (common === read.length) continue;
      // The text may show bytes, or some of them, that were substituted when they were appended.
      const until = Math.min(to, bytes.unknownUntil?.(at) ?? at);
      if (until === at) return { kind: 'different', at };
      const rest = await reading.peek(until - at);
      onUnshown(at, at + rest.length);
      reading.advance(rest.length);
      at += rest.length;
      // The range ends within a character of the text: it shows other bytes.
      if (at === until && ((await reading.peek(1))[0] ?? 0) >> 6 === 0b10) return { kind: 'different', at };
      continue;
    }
    if (reading.atEnd()) return { kind: 'shorter', at };
    const end = await endOfReplaced(reading, bytes, { from: at, to, offset });
    if (end.at > at) onUnshown(at, end.at);
    if (end.kind === 'different' && reading.atEnd()) return { kind: 'shorter', at };
    // Text that does not fit contradicts no bytes that were substituted: it shows too little of them.
    const isUnknown = bytes.unknownUntil?.(at) !== undefined;
    if (end.kind === 'contradicted' || (end.kind === 'different' && !isUnknown)) return { kind: 'different', at };
    if (end.kind !== 'found') return { kind: 'same', at, open: true };
    at = end.at;
  }
  return { kind: 'same', at: to, open: false };
}

/**
 * found: the text goes on at `at`. open: the bytes end, and how many of the U+FFFD stand for them is uncertain.
 * different: the text does not show the bytes after `at`. contradicted: it does not show a byte that is known.
 */
interface ReplacedEnd {
  readonly kind: 'found' | 'open' | 'different' | 'contradicted';
  readonly at: number;
}

/** Moves the reading past the U+FFFD at its cursor, as far as they stand for the bytes from `from` on. */
async function endOfReplaced(
  reading: Reading,
  bytes: Bytes,
  { from, to, offset = from }: Stretch,
): Promise<ReplacedEnd> {
  const count = await reading.skipUncertain();
  const follows = await reading.peek(RESUME_BYTES);
  const maxEach = reading.isAsciiOnly ? MAX_BYTES_A_CHARACTER : MAX_BYTES_A_REPLACEMENT;
  const [min, max] = [from + count, from + count * maxEach];
  let window: Buffer = Buffer.alloc(0);
  let [windowAt, at] = [from, from];
  for (; at <= max; at++) {
    const windowEnd = windowAt + window.length;
    if (at + RESUME_BYTES > windowEnd && windowEnd < to) {
      window = await bytes.read(at, Math.min(to, at + LOOKAHEAD_BYTES));
      windowAt = at;
    }
    if (at === to) return { kind: 'open', at };
    const rest = window.subarray(at - windowAt);
    if (at >= min && follows.length > 0 && startsAlike(rest, follows)) {
      // A part of a character may also be one of the bytes before it.
      const isWhole = rest.length >= widthOfLead(follows[0] ?? 0);
      return isWhole ? { kind: 'found', at } : { kind: 'open', at: to };
    }
    // No U+FFFD stands for an ASCII character, and no substituted byte is one.
    const isKnownNext = follows.length > 0 && (rest[0] ?? 0) < 0x80;
    if (isKnownNext && (at < min || (follows[0] ?? 0) < 0x80)) return { kind: 'contradicted', at };
    if ((rest[0] ?? 0) < 0x80 || (!reading.isAsciiOnly && isShownWhole(rest, at - offset))) break;
  }
  return follows.length === 0 && at >= min ? { kind: 'found', at: min } : { kind: 'different', at };
}

/** Whether the bytes, so far after the requested offset, start with a character that nothing cuts. */
function isShownWhole(bytes: Buffer, at: number): boolean {
  const width = widthOfLead(bytes[0] ?? 0);
  // U+FFFD itself, and U+FFFE and U+FFFF, which XML cannot contain.
  const isReplacementLike = bytes[0] === 0xef && bytes[1] === 0xbf && (bytes[2] ?? 0) >= 0xbd;
  const isWhole = width > 1 && width <= bytes.length && isUtf8(bytes.subarray(0, width));
  return isWhole && !isReplacementLike && at + width <= WITHIN_BLOCK_BYTES;
}
