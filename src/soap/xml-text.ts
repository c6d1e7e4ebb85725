/**
 * Character data of XML as bytes: it is UTF-8 already, so only the references have to be resolved. References to
 * control characters, which XML 1.0 forbids and ASP.NET writes (field notes 2), are resolved like any other.
 */
import { malformed } from './malformed.ts';

const AMPERSAND = 0x26;
const SEMICOLON = 0x3b;

/** Longer references (leading zeros) are refused, so that an endless one is not waited for. */
const MAX_REFERENCE_BYTES = 32;

const NAMED: ReadonlyMap<string, number> = new Map([
  ['amp', 0x26],
  ['lt', 0x3c],
  ['gt', 0x3e],
  ['quot', 0x22],
  ['apos', 0x27],
]);

/**
 * The text that the XML characters `bytes` stand for, as UTF-8 bytes; `bytes` itself if there is no reference in it.
 * @throws JobtailError malformed
 */
export function resolveReferences(bytes: Buffer): Buffer {
  let reference = bytes.indexOf(AMPERSAND);
  if (reference === -1) return bytes;
  // No reference is shorter than the character it stands for.
  const text = Buffer.allocUnsafe(bytes.length);
  let length = 0;
  let copied = 0;
  while (reference !== -1) {
    length += bytes.copy(text, length, copied, reference);
    const end = endOfReference(bytes, reference);
    length = writeCharacter(text, length, characterOf(bytes.toString('latin1', reference + 1, end)));
    copied = end + 1;
    reference = bytes.indexOf(AMPERSAND, copied);
  }
  length += bytes.copy(text, length, copied);
  return text.subarray(0, length);
}

/**
 * Where the characters of `bytes` from `start` on can be cut: before a UTF-8 character or a reference of which only
 * the first bytes have arrived.
 */
export function endOfWholeCharacters(bytes: Buffer, start: number): number {
  const end = endOfWholeUtf8(bytes, start);
  const from = Math.max(start, end - MAX_REFERENCE_BYTES);
  const tail = bytes.subarray(from, end);
  const reference = tail.lastIndexOf(AMPERSAND);
  return reference === -1 || tail.includes(SEMICOLON, reference) ? end : from + reference;
}

/** Where `bytes` from `start` on can be cut: before a UTF-8 character of which only the first bytes have arrived. */
export function endOfWholeUtf8(bytes: Buffer, start: number): number {
  const end = bytes.length;
  for (let back = 1; back <= 3 && end - back >= start; back += 1) {
    const byte = bytes[end - back] ?? 0;
    if (byte < 0x80) return end;
    if (byte >= 0xc0) {
      const width = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
      return width > back ? end - back : end;
    }
  }
  return end;
}

function endOfReference(bytes: Buffer, start: number): number {
  const limit = Math.min(bytes.length, start + MAX_REFERENCE_BYTES);
  for (let at = start + 1; at < limit; at += 1) {
    if (bytes[at] === SEMICOLON) return at;
  }
  throw malformed('an & that begins no reference');
}

/** The code point of a reference without its & and ;. */
function characterOf(name: string): number {
  const named = NAMED.get(name);
  if (named !== undefined) return named;
  const digits = /^#(?:x([0-9a-fA-F]+)|([0-9]+))$/.exec(name);
  if (digits === null) throw malformed('a reference to an unknown entity');
  const point = digits[1] === undefined ? Number.parseInt(digits[2] ?? '', 10) : Number.parseInt(digits[1], 16);
  if (point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) throw malformed('a reference to no character');
  return point;
}

function writeCharacter(text: Buffer, at: number, point: number): number {
  if (point < 0x80) {
    text[at] = point;
    return at + 1;
  }
  return at + text.write(String.fromCodePoint(point), at);
}
