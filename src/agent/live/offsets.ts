/**
 * From where the service is asked for a file: from the beginning of a character of the mirror, so that the answer
 * begins with what is there, but behind byte-order marks, which some services swallow at the offset
 * (docs/servers.md 1.4).
 */
import { BYTE_ORDER_MARK, characterStart, standsAt } from '../../bytes.ts';
import type { LiveFile } from './mirror/live-file.ts';

const LONGEST_CHARACTER_BYTES = 4;
/** So far back a place is looked for at which no mark stands. */
const REACH_BYTES = 64;
/** So far before the overlap a character beyond ASCII is looked for that shows how the service decodes. */
const PROOF_BYTES = 1024;

/**
 * A little before the committed position, or before the last character beyond ASCII if that is not much further: it shows
 * how the service decodes. The beginning unless the mirror is intact.
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
 * The position at or before `position` where a character of the mirror begins, or behind the marks that stand there; but
 * none where a byte-order mark of UTF-16 stands, or could.
 */
export async function alignDown(file: LiveFile, position: number): Promise<number> {
  const start = Math.max(0, position - REACH_BYTES);
  const around = await file.read(start, position + LONGEST_CHARACTER_BYTES);
  const aligned = characterStart(around, position - start);
  const clear = pastByteOrderMark(around, aligned);
  // One mark may stand behind the other.
  if (clear > aligned && start + clear < file.length) return alignDown(file, start + clear);
  const least = start === 0 ? 0 : LONGEST_CHARACTER_BYTES - 1;
  return start + besideUtf16Mark(around, Math.min(file.length - start, clear), least);
}

/** Whether the bytes at `index` may be a byte-order mark of UTF-16; behind the last one there may be anything. */
export function mayBeUtf16Mark(bytes: Buffer, index: number): boolean {
  const [first, second = 0xff] = bytes.subarray(index, index + 2);
  // An unknown byte stands as 0xff.
  return (first === 0xff && second >= 0xfe) || (first === 0xfe && second === 0xff);
}

/**
 * `index`, or the nearest one before it, or else behind it, at which no mark of UTF-16 can stand; before `least`, the
 * bytes may begin within a character.
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

/** Behind the byte-order mark that `index` is in; `index` itself if it is in none. */
function pastByteOrderMark(bytes: Buffer, index: number): number {
  for (const back of [0, 1, 2]) {
    if (index - back >= 0 && standsAt(bytes, index - back, BYTE_ORDER_MARK))
      return index - back + BYTE_ORDER_MARK.length;
  }
  return index;
}
