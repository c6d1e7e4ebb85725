/** Whether a file on the server is a live file: its text shows the bytes. How many U+FFFD there are proves nothing. */
import { isAscii } from 'node:buffer';
import type { Content } from '../../agent/ports/server.ts';
import { BYTE_ORDER_MARK, REPLACEMENT, standsAt, startsAlike, widthOfLead } from '../../bytes.ts';
import { MARKS } from './blocks.ts';
import type { ServerDecoding } from './decoding.ts';

/** Number of bytes that are compared with the text. */
export const COMPARED_BYTES = 64 * 1024;
/** Bytes of text after U+FFFD that must be equal. */
const RESUME_BYTES = 64;
const MAX_BYTES_A_REPLACEMENT = 3;
/** The longest character, and one that stands for any character beyond ASCII. */
const MAX_BYTES_A_CHARACTER = 4;

export interface TextProof {
  readonly isShown: boolean;
  /** How the server decodes, if the bytes show it. */
  readonly evidence: Exclude<ServerDecoding, 'unknown'> | undefined;
}

/** Compares a text with the bytes where it begins. `isOtherwise`: only its ASCII characters count. */
export async function proofBy(content: Content, bytes: Buffer, isOtherwise: boolean): Promise<TextProof> {
  const text = await content.read(0, COMPARED_BYTES * MAX_BYTES_A_CHARACTER);
  // An empty text shows no bytes, or a mark that the server stripped.
  const isEmpty = bytes.length === 0 || MARKS.some((mark) => mark.equals(bytes));
  if (text.length === 0 || bytes.length === 0) return { isShown: text.length === 0 && isEmpty, evidence: undefined };
  // Some servers strip the mark at the requested offset.
  const isMarked = standsAt(bytes, 0, BYTE_ORDER_MARK);
  const isUtf8 =
    mayShow(text, bytes, false) ||
    (isMarked && mayShow(text, bytes.subarray(BYTE_ORDER_MARK.length), false)) ||
    isUtf16(text, bytes);
  const isBeyondAscii = !isAscii(text);
  const isOther = !isUtf8 && isBeyondAscii && mayShow(text, bytes, true);
  const isMarkedAsUtf16 = MARKS.slice(1).some((mark) => startsAlike(mark, bytes));
  const evidence = isBeyondAscii && isUtf8 ? 'utf-8' : isOther && !isMarkedAsUtf16 ? 'other' : undefined;
  return { isShown: isUtf8 || (isOther && isOtherwise), evidence };
}

/** Whether a text may be that of bytes, as far as both go: where it is certain, both are equal. */
function mayShow(text: Buffer, bytes: Buffer, isAsciiOnly: boolean): boolean {
  const maxEach = isAsciiOnly ? MAX_BYTES_A_CHARACTER : MAX_BYTES_A_REPLACEMENT;
  let [inText, at] = [0, 0];
  for (;;) {
    const certain = text.subarray(inText, certainEnd(text, inText, isAsciiOnly));
    const there = bytes.subarray(at);
    if (!startsAlike(certain, there)) return false;
    // Bytes that end within a character of the text are no UTF-8: another decoder makes this character of its first byte.
    if (there.length < certain.length)
      return bytes.length >= COMPARED_BYTES || ((certain[there.length] ?? 0) & 0xc0) !== 0x80;
    at += certain.length;
    inText += certain.length;
    let min = at;
    for (; inText < text.length && certainEnd(text, inText, isAsciiOnly) === inText; min++)
      inText += widthOfLead(text[inText] ?? 0);
    if (inText === text.length) return true;
    const follows = text.subarray(inText, Math.min(inText + RESUME_BYTES, certainEnd(text, inText, isAsciiOnly)));
    const max = at + (min - at) * maxEach;
    // No U+FFFD stands for an ASCII character.
    while (at < max && (bytes[at] ?? 0) >= 0x80 && !(at >= min && startsAlike(bytes.subarray(at), follows))) at++;
    if (at >= bytes.length) return true;
    if (at < min) return false;
  }
}

/** Where the certain bytes of a text end that begin at `from`. */
function certainEnd(text: Buffer, from: number, isAsciiOnly: boolean): number {
  let end = from;
  if (isAsciiOnly) while ((text[end] ?? 0x80) < 0x80) end++;
  else end = text.indexOf(REPLACEMENT, from);
  return end < 0 ? text.length : end;
}

/** Whether a text shows bytes that begin with a mark of UTF-16, as one decoder to the end does. */
function isUtf16(text: Buffer, bytes: Buffer): boolean {
  const [, little, big] = MARKS;
  const isLittle = standsAt(bytes, 0, little);
  if (!isLittle && !standsAt(bytes, 0, big)) return false;
  const shown = Buffer.from(new TextDecoder(isLittle ? 'utf-16le' : 'utf-16be').decode(bytes, { stream: true }));
  return startsAlike(shown, text);
}
