/**
 * The offset of a request: at the start of a character of the mirror, so that the response starts with known bytes, and
 * after byte-order marks, which some servers strip at the requested offset (docs/servers.md 1.4).
 */
import { BYTE_ORDER_MARK, characterStart, standsAt } from '../../bytes.ts';
import type { LiveFile } from './mirror/live-file.ts';

const LONGEST_CHARACTER_BYTES = 4;
/** How far back an offset without a byte-order mark is searched. */
const REACH_BYTES = 64;
/** How far before the overlap a non-ASCII character is searched: it shows how the server decodes. */
const PROOF_BYTES = 1024;

/**
 * The offset of the overlap, or of the last non-ASCII character shortly before it, which shows how the server decodes.
 * 0 unless the mirror is intact.
 */
export async function askFrom(file: LiveFile): Promise<number> {
  if (file.integrity !== 'intact') return 0;
  const overlap = Math.max(0, file.committed - file.overlapBytes);
  const start = Math.max(0, overlap - PROOF_BYTES);
  const before = await file.read(start, file.committed);
  const beyondAscii = before.findLastIndex((byte) => byte >= 0x80);
  return alignDown(file, beyondAscii < 0 ? overlap : Math.min(overlap, start + beyondAscii));
}

/**
 * The offset at or before `position` where a character of the mirror starts, or after the byte-order marks there; never
 * one at which a byte-order mark of UTF-16 is or may be.
 */
export async function alignDown(file: LiveFile, position: number): Promise<number> {
  const start = Math.max(0, position - REACH_BYTES);
  const around = await file.read(start, position + LONGEST_CHARACTER_BYTES);
  const aligned = characterStart(around, position - start);
  const clear = pastByteOrderMark(around, aligned);
  // A second mark may follow.
  if (clear > aligned && start + clear < file.length) return alignDown(file, start + clear);
  const least = start === 0 ? 0 : LONGEST_CHARACTER_BYTES - 1;
  return start + besideUtf16Mark(around, Math.min(file.length - start, clear), least);
}

/** Whether the bytes at `index` may be a byte-order mark of UTF-16; after the last byte any byte may follow. */
export function mayBeUtf16Mark(bytes: Buffer, index: number): boolean {
  const [first, second = 0xff] = bytes.subarray(index, index + 2);
  // A substituted byte is 0xff.
  return (first === 0xff && second >= 0xfe) || (first === 0xfe && second === 0xff);
}

/**
 * `index`, or the nearest offset before it, or else after it, at which no mark of UTF-16 can be; before `least`, the
 * bytes may start within a character.
 */
function besideUtf16Mark(bytes: Buffer, index: number, least: number): number {
  if (!mayBeUtf16Mark(bytes, index)) return index;
  for (let at = index; at > least; ) {
    at = characterStart(bytes, at - 1);
    if (at < least) break;
    if (!mayBeUtf16Mark(bytes, at) && pastByteOrderMark(bytes, at) === at) return at;
  }
  for (let at = index + 1; at < bytes.length; at++) if (!mayBeUtf16Mark(bytes, at)) return at;
  return index;
}

/** The end of the byte-order mark around `index`; `index` itself if there is none. */
function pastByteOrderMark(bytes: Buffer, index: number): number {
  for (const back of [0, 1, 2]) {
    if (index - back >= 0 && standsAt(bytes, index - back, BYTE_ORDER_MARK))
      return index - back + BYTE_ORDER_MARK.length;
  }
  return index;
}
