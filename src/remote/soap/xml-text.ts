/**
 * Character data of XML as bytes: UTF-8 with references to resolve. Control characters, which XML 1.0 forbids, are
 * bytes of jobs here: accepted raw, and as references of ASP.NET (docs/dev/servers.md 2.1). Markup may not contain them.
 */
import { endOfWholeUtf8 } from '../../bytes.ts';
import { malformed } from '../wrong-answers.ts';

const AMPERSAND = 0x26;
const SEMICOLON = 0x3b;
const NUMBER_SIGN = 0x23;
const LOWER_X = 0x78;

/** Longer references (leading zeros) are refused, so that an endless one is not waited for. */
const MAX_REFERENCE_BYTES = 32;

/** This distance after a reference is searched here: in dense text, a call into the platform costs more. */
const NEAR_BYTES = 32;

/** Characters that XML 1.0 cannot contain, not even as a reference; a lone surrogate is no character. */
export const NOT_XML = /[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/u;

/** Of markup that was decoded, the replacement character stands for bytes that are not UTF-8. */
export const NOT_MARKUP = /[^\t\n\r\u0020-\uD7FF\uE000-\uFFFC\u{10000}-\u{10FFFF}]/u;

/** The bytes of a name as one number. It begins with 1, so that a leading NUL counts. */
const packed = (name: string) => Array.from(Buffer.from(name)).reduce((number, byte) => number * 256 + byte, 1);

const NAMED: ReadonlyMap<number, number> = new Map([
  [packed('amp'), 0x26],
  [packed('lt'), 0x3c],
  [packed('gt'), 0x3e],
  [packed('quot'), 0x22],
  [packed('apos'), 0x27],
]);
const MAX_NAME_CHARACTERS = 4;

/**
 * The text of the XML characters `bytes`, as UTF-8; `bytes` itself if they contain no reference. Uses `space`, if it is
 * large enough: no text is longer than its characters. @throws JobtailError malformed
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

const SPACE_BYTES = 64 * 1024;
let space: Buffer | undefined;

/** A buffer for one text after the other; each is valid until the next. */
export function reusedSpace(): Buffer {
  space ??= Buffer.allocUnsafeSlow(SPACE_BYTES);
  return space;
}

/** Where `bytes` can be cut after `start`: before an incomplete UTF-8 character or reference. */
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

function pointOf(bytes: Buffer, start: number, end: number): number {
  if (bytes[start] === NUMBER_SIGN) return pointOfNumber(bytes, start + 1, end);
  let name = 1;
  for (let at = start; at < end && end - start <= MAX_NAME_CHARACTERS; at += 1) name = name * 256 + (bytes[at] ?? 0);
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

export function isWhiteSpace(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09);
}

const XML_NAMESPACE = 'http://www.w3.org/XML/1998/namespace';
const XMLNS_NAMESPACE = 'http://www.w3.org/2000/xmlns/';

/**
 * The namespaces of prefixes at the current element; '' is the default namespace. One map for the whole document, and a
 * list of changes to undo at the end of each element, so that a declaration has a constant cost: `sax` would take
 * milliseconds for an element below many declarations.
 */
export class Namespaces {
  /** Undefined: out of scope. Deleting keys would be slow. */
  readonly #bound = new Map<string, string | undefined>([
    ['', ''],
    ['xml', XML_NAMESPACE],
  ]);
  readonly #hidden: (readonly Hidden[])[] = [];

  open(attributes: readonly (readonly [name: string, value: string])[]): void {
    let hidden: Hidden[] | undefined;
    for (const [name, namespace] of attributes) {
      if (name !== 'xmlns' && !name.startsWith('xmlns:')) continue;
      const prefix = name.slice('xmlns:'.length);
      const isXml = prefix === 'xml' && namespace === XML_NAMESPACE;
      const reserved = prefix === 'xml' || prefix === 'xmlns' || namespace === XMLNS_NAMESPACE;
      if ((reserved && !isXml) || (prefix !== '' && namespace === '')) throw malformed('a wrong namespace declaration');
      hidden ??= [];
      hidden.push([prefix, this.#bound.get(prefix)]);
      this.#bound.set(prefix, namespace);
    }
    this.#hidden.push(hidden ?? NONE_HIDDEN);
  }

  close(): void {
    for (const [prefix, namespace] of this.#hidden.pop() ?? NONE_HIDDEN) this.#bound.set(prefix, namespace);
  }

  resolve(qualifiedName: string): { uri: string; local: string } {
    const colon = qualifiedName.indexOf(':');
    const namespace = this.#bound.get(colon === -1 ? '' : qualifiedName.slice(0, colon));
    if (namespace === undefined) throw malformed('a prefix without a namespace');
    return { uri: namespace, local: qualifiedName.slice(colon + 1) };
  }
}

type Hidden = readonly [prefix: string, namespace: string | undefined];
const NONE_HIDDEN: readonly Hidden[] = [];
