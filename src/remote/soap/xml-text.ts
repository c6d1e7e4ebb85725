/**
 * Character data of XML as bytes: UTF-8 with references to resolve. Control characters, which XML 1.0 forbids, are
 * bytes of jobs here: accepted raw, and as references of ASP.NET (docs/dev/servers.md 2.1). Markup may not contain them.
 */
import { endOfWholeUtf8 } from '../../bytes.ts';
import { malformed } from '../wrong-responses.ts';

const AMPERSAND = 0x26;
const SEMICOLON = 0x3b;

/** Longer references (leading zeros) are refused, so that an endless one is not waited for. */
const MAX_REFERENCE_BYTES = 32;
const REFERENCE = /&(?:(amp|lt|gt|quot|apos)|#(x[0-9a-fA-F]{1,28}|[0-9]{1,29}));|&/g;
const NAMED: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

/** Characters that XML 1.0 cannot contain, not even as a reference; a lone surrogate is no character. */
export const NOT_XML = /[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/u;

/** Of markup that was decoded, the replacement character stands for bytes that are not UTF-8. */
export const NOT_MARKUP = /[^\t\n\r\u0020-\uD7FF\uE000-\uFFFC\u{10000}-\u{10FFFF}]/u;

/** The text of the XML characters `bytes`, as UTF-8; `bytes` itself without a reference. @throws JobtailError malformed */
export function resolveReferences(bytes: Buffer): Buffer {
  if (!bytes.includes(AMPERSAND)) return bytes;
  // Each byte as one character: references are ASCII.
  const text = bytes.toString('latin1').replace(REFERENCE, (_, name?: string, number?: string) => {
    if (name !== undefined) return NAMED[name] ?? '';
    if (number === undefined) throw malformed('an & that begins no known reference');
    const point = Number(number.startsWith('x') ? `0${number}` : number);
    if (point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) throw malformed('a reference to no character');
    return point < 0x80 ? String.fromCharCode(point) : Buffer.from(String.fromCodePoint(point)).toString('latin1');
  });
  return Buffer.from(text, 'latin1');
}

/** Where `bytes` can be cut after `start`: before an incomplete UTF-8 character or reference. */
export function endOfWholeCharacters(bytes: Buffer, start: number): number {
  const end = endOfWholeUtf8(bytes, start);
  const from = Math.max(start, end - MAX_REFERENCE_BYTES);
  const tail = bytes.subarray(from, end);
  const reference = tail.lastIndexOf(AMPERSAND);
  return reference === -1 || tail.includes(SEMICOLON, reference) ? end : from + reference;
}
