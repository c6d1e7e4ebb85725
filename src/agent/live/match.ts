/**
 * Compares the text of a response with known bytes: a mirror, or raw bytes. Where the text has no U+FFFD, bytes are
 * compared with bytes. Where it has some, the bytes show where the text goes on after them. How many U+FFFD stand for
 * undecodable bytes depends on the runtime of the server, and proves nothing:
 *
 *   undecodable bytes, bytes of an inexact range         at least one U+FFFD for three, at most one for each
 *   a character that the edge of a block cuts            one, and one for each byte behind the edge
 *   a character that a short read cuts                   at least two, at most one for each byte
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
export interface Stretch {
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
const MAX_UNIT_BYTES = 4;
const MAX_BYTES_A_REPLACEMENT = 3;
const ROUNDING = 1e-6;
const LAST_LEAD = 0xf4;
/** Lead bytes that allow only some continuation bytes as the second byte. */
const SECOND_BYTES: ReadonlyMap<number, readonly [number, number]> = new Map([
  [0xe0, [0xa0, 0xbf]],
  [0xed, [0x80, 0x9f]],
  [0xf0, [0x90, 0xbf]],
  [0xf4, [0x80, 0x8f]],
]);

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
    if (end.position > at) onUnshown(at, end.position);
    if (end.differs && reading.atEnd()) return { kind: 'shorter', at };
    // Text that does not fit contradicts no bytes that were substituted: it shows too little of them.
    if (end.differs)
      return (bytes.unknownUntil?.(at) ?? at) > at ? { kind: 'same', at, open: true } : { kind: 'different', at };
    if (end.open) return { kind: 'same', at, open: true };
    at = end.position;
  }
  return { kind: 'same', at: to, open: false };
}

/**
 * The end of the bytes that U+FFFD stand for. `open`: the bytes end there, and how many of the U+FFFD stand for them is
 * uncertain. `differs`: the text shows other bytes after that position.
 */
interface ReplacedEnd {
  readonly position: number;
  readonly open?: boolean;
  readonly differs?: boolean;
}

/** Moves the reading past the U+FFFD at its cursor, as far as they stand for the bytes from `at` on. */
async function endOfReplaced(
  reading: Reading,
  bytes: Bytes,
  { from: at, to, offset = at }: Stretch,
): Promise<ReplacedEnd> {
  const behind = reading.fork();
  const count = await behind.skipUncertain();
  const follows = Buffer.from(await behind.peek(RESUME_BYTES));
  const mayResume = follows.length > 0 || behind.atEnd();
  let [min, max] = [0, 0];
  // Where the text goes on, by RESUME_BYTES equal bytes; and where it may, by fewer, or none.
  let [sure, possible]: (number | undefined)[] = [];
  let [window, windowAt] = [Buffer.alloc(0), at];
  let position = at;
  while (min <= count + ROUNDING) {
    const windowEnd = windowAt + window.length;
    if (position + MAX_UNIT_BYTES + RESUME_BYTES > windowEnd && windowEnd < to) {
      window = Buffer.from(await bytes.read(position, Math.min(to, position + LOOKAHEAD_BYTES)));
      windowAt = position;
    }
    const rest = window.subarray(position - windowAt);
    if (position === to) {
      if (sure === undefined) return { position, open: true };
      break;
    }
    if (position > at && max >= count && mayResume && startsAlike(rest, follows)) {
      if (follows.length > 0 && beginsAlike(rest, follows)) sure ??= position;
      possible ??= position;
    }
    const isUnknown = bytes.unknownUntil?.(position) !== undefined;
    const unit = isUnknown ? UNKNOWN_UNIT : unitAt(rest, position - offset, reading.isAsciiOnly);
    if (unit === undefined) break;
    min += unit.min;
    max += unit.max;
    position += unit.width;
  }
  await reading.skipUncertain();
  const end = sure ?? possible;
  return end === undefined ? { position, differs: true } : { position: end };
}

/** Whether both begin with the same whole character, or have RESUME_BYTES; the caller compared the bytes. */
function beginsAlike(a: Buffer, b: Buffer): boolean {
  const width = widthOfLead(a[0] ?? 0);
  return Math.min(a.length, b.length) >= (isUtf8(a.subarray(0, width)) ? width : RESUME_BYTES);
}

/** One sequence of bytes, and how many U+FFFD the server sends for it. */
interface Unit {
  readonly width: number;
  readonly min: number;
  readonly max: number;
}

const UNKNOWN_UNIT: Unit = { width: 1, min: 1 / MAX_BYTES_A_REPLACEMENT, max: 1 };

/**
 * The sequence at the start of `bytes`, which are `at` bytes after the requested offset; undefined if it is never shown
 * as U+FFFD: ASCII, or a character that nothing cuts.
 */
function unitAt(bytes: Buffer, at: number, isAsciiOnly: boolean): Unit | undefined {
  const lead = bytes[0] ?? 0;
  if (lead < 0x80) return undefined;
  if (isAsciiOnly) return UNKNOWN_UNIT;
  const needed = lead <= LAST_LEAD ? widthOfLead(lead) : 1;
  const [low, high] = SECOND_BYTES.get(lead) ?? [0x80, 0xbf];
  let width = 1;
  if (needed > 1 && isWithin(bytes[1], low, high)) width++;
  while (width > 1 && width < needed && isWithin(bytes[width], 0x80, 0xbf)) width++;
  const isUndecodable = width < needed || width === 1 || isReplacementLike(bytes);
  // A sequence that the end cuts may continue in the next bytes: then one more U+FFFD may stand for it.
  const max = width < needed && width === bytes.length ? width + 1 : width;
  if (isUndecodable) return { width, min: width / MAX_BYTES_A_REPLACEMENT, max };
  // A whole character is shown, unless the edge of a block or a short read cuts it: into two parts at least.
  if (at + width <= WITHIN_BLOCK_BYTES) return undefined;
  return { width, min: 2, max: width };
}

/** U+FFFD itself, and U+FFFE and U+FFFF, which XML cannot contain. */
const isReplacementLike = (bytes: Buffer) => bytes[0] === 0xef && bytes[1] === 0xbf && (bytes[2] ?? 0) >= 0xbd;

const isWithin = (byte = 0, low = 0, high = 0) => byte >= low && byte <= high;
