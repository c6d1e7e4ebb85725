/**
 * Character data of XML as bytes: it is UTF-8 already, so only the references have to be resolved. Control characters,
 * which XML 1.0 forbids, are the bytes of jobs here: they are taken raw, and as the references that ASP.NET writes
 * (docs/servers.md 2.1). In markup (tags, comments, instructions) they are not needed, and refused.
 */
import { endOfWholeUtf8 } from '../../../bytes.ts';
import { malformed } from '../../wrong-answers.ts';

const AMPERSAND = 0x26;
const SEMICOLON = 0x3b;
const NUMBER_SIGN = 0x23;
const LOWER_X = 0x78;

/** Longer references (leading zeros) are refused, so that an endless one is not waited for. */
const MAX_REFERENCE_BYTES = 32;

/**
 * Up to so many bytes behind a reference are looked through here: in dense text a call into the platform costs more.
 */
const NEAR_BYTES = 32;

/** What XML 1.0 cannot hold, not even as a reference; a lone surrogate is no character at all. */
export const NOT_XML = /[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/u;

/** The bytes of a name, as one number. It begins with 1: else a NUL before the name would not count. */
const packed = (name: string) => Array.from(Buffer.from(name)).reduce((number, byte) => number * 256 + byte, 1);

const NAMED: ReadonlyMap<number, number> = new Map([
  [packed('amp'), 0x26],
  [packed('lt'), 0x3c],
  [packed('gt'), 0x3e],
  [packed('quot'), 0x22],
  [packed('apos'), 0x27],
]);
const LONGEST_NAME = 4;

/**
 * The text that the XML characters `bytes` stand for, as UTF-8 bytes; `bytes` itself if there is no reference in it.
 * It is written into `space`, if that is given and large enough: no text is longer than its characters.
 * @throws JobtailError malformed
 */
export function resolveReferences(bytes: Buffer, space?: Buffer): Buffer {
  const first = bytes.indexOf(AMPERSAND);
  if (first === -1) return bytes;
  const text = space !== undefined && space.length >= bytes.length ? space : Buffer.allocUnsafe(bytes.length);
  let length = bytes.copy(text, 0, 0, first);
  for (let at = first; at < bytes.length; ) {
    const end = endOfReference(bytes, at);
    length = writeCharacter(text, length, pointOf(bytes, at + 1, end));
    at = end + 1;
    const near = Math.min(bytes.length, at + NEAR_BYTES);
    while (at < near && bytes[at] !== AMPERSAND) text[length++] = bytes[at++] ?? 0;
    if (at === near && at < bytes.length) {
      const next = bytes.indexOf(AMPERSAND, at);
      const to = next === -1 ? bytes.length : next;
      length += bytes.copy(text, length, at, to);
      at = to;
    }
  }
  return text.subarray(0, length);
}

/** The usual size of a network chunk. */
const SPACE_BYTES = 64 * 1024;
let space: Buffer | undefined;

/** Where one text after the other is resolved; each is only good until the next. */
export function reusedSpace(): Buffer {
  space ??= Buffer.allocUnsafeSlow(SPACE_BYTES);
  return space;
}

/**
 * Where the characters of `bytes` from `start` on can be cut: before a UTF-8 character or a reference that is
 * incomplete.
 */
export function endOfWholeCharacters(bytes: Buffer, start: number): number {
  const end = endOfWholeUtf8(bytes, start);
  const from = Math.max(start, end - MAX_REFERENCE_BYTES);
  const tail = bytes.subarray(from, end);
  const reference = tail.lastIndexOf(AMPERSAND);
  return reference === -1 || tail.includes(SEMICOLON, reference) ? end : from + reference;
}

function endOfReference(bytes: Buffer, start: number): number {
  const limit = Math.min(bytes.length, start + MAX_REFERENCE_BYTES);
  for (let at = start + 1; at < limit; at += 1) {
    if (bytes[at] === SEMICOLON) return at;
  }
  throw malformed('an & that begins no reference');
}

/** The code point of the reference whose name or number is [start, end). */
function pointOf(bytes: Buffer, start: number, end: number): number {
  if (bytes[start] === NUMBER_SIGN) return pointOfNumber(bytes, start + 1, end);
  let name = 1;
  for (let at = start; at < end && end - start <= LONGEST_NAME; at += 1) name = name * 256 + (bytes[at] ?? 0);
  const point = NAMED.get(name);
  if (point === undefined) throw malformed('a reference to an unknown entity');
  return point;
}

function pointOfNumber(bytes: Buffer, start: number, end: number): number {
  const isHex = bytes[start] === LOWER_X;
  const from = isHex ? start + 1 : start;
  const base = isHex ? 16 : 10;
  let point = 0;
  for (let at = from; at < end; at += 1) {
    const digit = digitOf(bytes[at] ?? 0);
    if (digit >= base) throw malformed('a reference to an unknown entity');
    point = point * base + digit;
  }
  if (from === end) throw malformed('a reference to an unknown entity');
  if (point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) throw malformed('a reference to no character');
  return point;
}

/** The value of a hexadecimal digit; 16 for anything else. */
function digitOf(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : 16;
}

function writeCharacter(text: Buffer, at: number, point: number): number {
  if (point < 0x80) {
    text[at] = point;
    return at + 1;
  }
  return at + text.write(String.fromCodePoint(point), at);
}
