/**
 * The characters of a JSON string as bytes: they are UTF-8 already, so only the escapes have to be resolved, which the
 * platform's own JSON does for a piece at a time. What an escape cannot be turned into bytes of a text (half of a
 * surrogate pair) is an error of its own.
 */
import { isUtf8 } from 'node:buffer';
import { endOfWholeUtf8 } from '../../../bytes.ts';
import { JobtailError } from '../../../errors.ts';
import { malformed } from '../../wrong-answers.ts';

export const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const LOWER_U = 0x75;
/** Below, characters have to be escaped. */
const FIRST_PLAIN = 0x20;

/** Of `\uXXXX`; the other escapes have two. */
const UNIT_BYTES = 6;

/** Strings of this size are made and dropped in the processor's cache. */
const PIECE_BYTES = 32 * 1024;

/** So many bytes are looked through here: of a short string, a call into the platform costs more. */
const NEAR_BYTES = 64;

const HIGH_SURROGATE = /^\\u[dD][89abAB]/;

/** Some characters of a string. */
export interface Characters {
  /** As UTF-8; whole ones. Only good until the next are read into the same space. */
  readonly bytes: Buffer;
  /** What comes next in the document: the quote that ends the string, more of it, or what more bytes are needed for. */
  readonly next: number;
}

export interface Reading {
  /** As large as the bytes that are read; for those with escapes. */
  readonly space: () => Buffer;
  /** The receiver of the characters refuses those that must be escaped, except white space. */
  readonly isChecked: boolean;
}

/**
 * The next characters of the string that goes on at `start`, as far as they have come.
 * @throws JobtailError malformed
 */
export function readCharacters(bytes: Buffer, start: number, { space, isChecked }: Reading): Characters {
  const piece = bytes.subarray(start, start + PIECE_BYTES);
  const plainEnd = endOfPlain(piece);
  const isPlain = piece[plainEnd] !== BACKSLASH;
  const quote = isPlain ? plainEnd : endOfString(piece, plainEnd);
  const end = quote < piece.length ? quote : endOfWhole(piece, plainEnd);
  const whole = piece.subarray(0, end);
  if (!isUtf8(whole)) throw malformed('bytes that are not UTF-8');
  if (isPlain && (isChecked ? hasWhiteSpace(whole) : hasControl(whole))) throw wrongString();
  return { bytes: isPlain ? whole : resolveEscapes(whole, space()), next: start + end };
}

/** Where a quote or an escape begins; the end if none does. */
function endOfPlain(piece: Buffer): number {
  const near = Math.min(piece.length, NEAR_BYTES);
  for (let at = 0; at < near; at += 1) if (piece[at] === QUOTE || piece[at] === BACKSLASH) return at;
  const quote = piece.indexOf(QUOTE, near);
  const inside = quote === -1 ? piece : piece.subarray(0, quote);
  const backslash = inside.indexOf(BACKSLASH, near);
  return backslash === -1 ? inside.length : backslash;
}

const hasWhiteSpace = (bytes: Buffer) => bytes.includes('\n') || bytes.includes('\r') || bytes.includes('\t');

function hasControl(bytes: Buffer): boolean {
  if (bytes.length < NEAR_BYTES) return hasControlWithin(bytes, 0, bytes.length);
  const unaligned = (4 - (bytes.byteOffset & 3)) & 3;
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + unaligned, (bytes.length - unaligned) >> 2);
  // The highest bit of a byte is left where the byte is below 0x20, and never where none is.
  let found = 0;
  for (let index = 0; index < words.length; index += 1) {
    const word = words[index] as number;
    found |= (word - 0x20202020) & ~word;
  }
  if ((found & 0x80808080) !== 0) return true;
  return hasControlWithin(bytes, 0, unaligned) || hasControlWithin(bytes, unaligned + 4 * words.length, bytes.length);
}

function hasControlWithin(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) if ((bytes[at] as number) < FIRST_PLAIN) return true;
  return false;
}

/** Where the quote is that ends the string; the end of the piece if it is behind that. */
function endOfString(piece: Buffer, from: number): number {
  let quote = piece.indexOf(QUOTE, from);
  while (quote !== -1 && beginsEscape(piece, quote - 1)) quote = piece.indexOf(QUOTE, quote + 1);
  return quote === -1 ? piece.length : quote;
}

/** Whether the byte is a backslash that is not escaped itself. */
function beginsEscape(piece: Buffer, at: number): boolean {
  let first = at;
  while (first >= 0 && piece[first] === BACKSLASH) first -= 1;
  return (at - first) % 2 === 1;
}

/** Where the piece can be cut: before a character, an escape or a surrogate pair that is incomplete. */
function endOfWhole(piece: Buffer, firstEscape: number): number {
  const end = endOfWholeUtf8(piece, 0);
  const last = piece.lastIndexOf(BACKSLASH, end - 1);
  if (last < Math.max(firstEscape, end - UNIT_BYTES) || !beginsEscape(piece, last)) return end;
  if (last + 1 < end && piece[last + 1] !== LOWER_U) return end;
  // Whether it is half of a pair does not show before it is whole: it waits, and so does the first half before it.
  const before = last - UNIT_BYTES;
  const isOfPair = before >= firstEscape && isHighSurrogate(piece, before) && beginsEscape(piece, before);
  return isOfPair ? before : last;
}

const isHighSurrogate = (piece: Buffer, at: number) =>
  HIGH_SURROGATE.test(piece.toString('latin1', at, at + UNIT_BYTES));

function resolveEscapes(whole: Buffer, space: Buffer): Buffer {
  // Escapes without a number stand for ASCII, so that each byte may be a character of its own: that is much faster.
  const encoding = whole.includes('\\u') ? 'utf8' : 'latin1';
  const text = parsed(whole.toString(encoding));
  if (!text.isWellFormed()) throw loneSurrogate();
  return space.subarray(0, space.write(text, encoding));
}

function parsed(inside: string): string {
  try {
    return JSON.parse(`"${inside}"`) as string;
  } catch {
    throw wrongString();
  }
}

const wrongString = () => malformed('an unknown escape, or a control character that is not escaped');

/** The answer is well-formed, but one of its texts is none: no bytes of a file stand for half a character. */
function loneSurrogate(): JobtailError {
  return new JobtailError(
    'malformed',
    'a text of the answer holds half of a surrogate pair, for which no bytes stand',
    {
      hint: 'the service shows a file as something that no file holds; show this to its operator',
    },
  );
}
