/**
 * What text shows of bytes (docs/dev/servers.md 1.2, 1.4): whole characters of UTF-8 within one block. Not U+FFFD, which
 * stands for other bytes, too, nor a byte-order mark: at the requested offset, some servers strip it, or decode all that
 * follows as UTF-16.
 */
import { isUtf8 } from 'node:buffer';
import { BYTE_ORDER_MARK, characterStart, firstCharacter, REPLACEMENT, startsAlike, widthOfLead } from '../../bytes.ts';

const BLOCK_BYTES = 1024;
/** A character that the edge of a block cuts in one response is whole in one that was requested this much later. */
export const HALF_BLOCK_BYTES = BLOCK_BYTES / 2;
/** Bytes at the start of a response that no edge of a block cuts. */
export const UNCUT_BYTES = BLOCK_BYTES - 4;

/** Of UTF-8, and of UTF-16 with the low and with the high byte first. */
export const MARKS = [BYTE_ORDER_MARK, Buffer.from([0xff, 0xfe]), Buffer.from([0xfe, 0xff])] as const;

/** How the last characters of three bytes begin. */
const LAST_CHARACTERS = REPLACEMENT.subarray(0, 2);

/** The width of the character that starts there, if text shows it; 0 if not. */
export function shownWidth(bytes: Buffer, at: number): number {
  const lead = bytes[at];
  if (lead === undefined || lead < 0x80) return lead === undefined ? 0 : 1;
  const width = widthOfLead(lead);
  const character = bytes.subarray(at, at + width);
  const isShown = width > 1 && character.length === width && isUtf8(character);
  // The characters after U+FFFD are those that XML cannot contain.
  const isSpecial = width === 3 && (character.equals(BYTE_ORDER_MARK) || character.compare(REPLACEMENT) >= 0);
  return isShown && !isSpecial ? width : 0;
}

/** Where the bytes begin that text shows to the end of `bytes`: after the last one that it does not show. */
export function shownFrom(bytes: Buffer): number {
  const first = firstCharacter(bytes);
  const isAllShown =
    isUtf8(bytes.subarray(first)) && !bytes.includes(LAST_CHARACTERS) && !bytes.includes(BYTE_ORDER_MARK);
  if (isAllShown) return first;
  let at = bytes.length;
  for (;;) {
    const start = characterStart(bytes, at - 1);
    if (at === 0 || start + shownWidth(bytes, start) !== at) return at;
    at = start;
  }
}

/** The first place where a response begins with no mark; the end of `bytes` if there is none. */
export function placeWithoutMark(bytes: Buffer): number {
  let at = 0;
  while (at < bytes.length && MARKS.some((mark) => startsAlike(mark, bytes.subarray(at)))) at++;
  return at;
}
