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
const MAX_NAME_CHARACTERS = 4;

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

const XML_NAMESPACE = 'http://www.w3.org/XML/1998/namespace';
const XSI_NAMESPACE = 'http://www.w3.org/2001/XMLSchema-instance';
const XMLNS_NAMESPACE = 'http://www.w3.org/2000/xmlns/';

export interface StartTag {
  /** As written, prefix included: the end tag repeats it. */
  readonly qualifiedName: string;
  readonly namespace: string;
  readonly localName: string;
  /** `xsi:nil` is true. */
  readonly nil: boolean;
  /** `<name/>`. */
  readonly empty: boolean;
  /** How many there are, declarations of namespaces among them. */
  readonly attributes: number;
}

/**
 * What prefixes stand for where the document has come to; '' is the default namespace. There is one map for the whole
 * document, and a list of what to put back at the end of each element: a declaration costs the same wherever it stands.
 */
export class Namespaces {
  /** Of each prefix, what it stands for; undefined if that is over. Taking keys out again and again would be slow. */
  readonly #bound = new Map<string, string | undefined>([
    ['', ''],
    ['xml', XML_NAMESPACE],
  ]);
  /** Of each open element, its declarations with what they hide. */
  readonly #hidden: (readonly Hidden[])[] = [];

  /** An element with these attributes begins. @throws JobtailError malformed */
  open(attributes: ReadonlyMap<string, string>): void {
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

  /** The innermost element ends. */
  close(): void {
    for (const [prefix, namespace] of this.#hidden.pop() ?? NONE_HIDDEN) this.#bound.set(prefix, namespace);
  }

  /** @throws JobtailError malformed for a prefix that stands for nothing */
  resolve(qualifiedName: string): { namespace: string; localName: string } {
    const colon = qualifiedName.indexOf(':');
    const namespace = this.#bound.get(colon === -1 ? '' : qualifiedName.slice(0, colon));
    if (namespace === undefined) throw malformed('a prefix without a namespace');
    return { namespace, localName: qualifiedName.slice(colon + 1) };
  }
}

type Hidden = readonly [prefix: string, namespace: string | undefined];
const NONE_HIDDEN: readonly Hidden[] = [];

const NAME = String.raw`[A-Za-z_\u0080-\u{10FFFF}][\w.\-\u00B7\u0080-\u{10FFFF}]*`;
const QUALIFIED_NAME = `(?:${NAME}:)?${NAME}`;
const START_OF_TAG = new RegExp(`<(${QUALIFIED_NAME})`, 'uy');
const ATTRIBUTE = new RegExp(
  String.raw`[ \t\r\n]+(${QUALIFIED_NAME})[ \t\r\n]*=[ \t\r\n]*(?:"([^<"]*)"|'([^<']*)')`,
  'uy',
);
const END_OF_TAG = /[ \t\r\n]*(\/?)>/y;
const END_TAG = new RegExp(String.raw`^</(${QUALIFIED_NAME})[ \t\r\n]*>$`, 'u');

/**
 * Reads a start tag from `<` to `>`; `namespaces` are those inside its element afterwards.
 * @throws JobtailError malformed
 */
export function parseStartTag(tag: string, namespaces: Namespaces): StartTag {
  START_OF_TAG.lastIndex = 0;
  const qualifiedName = START_OF_TAG.exec(tag)?.[1];
  if (qualifiedName === undefined) throw malformed('a < that begins no tag');
  const attributes = parseAttributes(tag, START_OF_TAG.lastIndex);
  namespaces.open(attributes.values);
  const { namespace, localName } = namespaces.resolve(qualifiedName);
  const { values, empty } = attributes;
  return { qualifiedName, namespace, localName, nil: isNil(values, namespaces), empty, attributes: values.size };
}

/**
 * The name in an end tag, as written.
 * @throws JobtailError malformed
 */
export function parseEndTag(tag: string): string {
  const name = END_TAG.exec(tag)?.[1];
  if (name === undefined) throw malformed('a wrong end tag');
  return name;
}

function parseAttributes(tag: string, start: number): { values: ReadonlyMap<string, string>; empty: boolean } {
  const values = new Map<string, string>();
  let at = start;
  for (;;) {
    ATTRIBUTE.lastIndex = at;
    const attribute = ATTRIBUTE.exec(tag);
    if (attribute === null) break;
    const name = attribute[1] ?? '';
    if (values.has(name)) throw malformed('an attribute that stands twice in a tag');
    values.set(name, attributeValue(attribute[2] ?? attribute[3] ?? ''));
    at = ATTRIBUTE.lastIndex;
  }
  END_OF_TAG.lastIndex = at;
  const end = END_OF_TAG.exec(tag);
  if (end === null || END_OF_TAG.lastIndex !== tag.length) throw malformed('a wrong start tag');
  return { values, empty: end[1] === '/' };
}

function attributeValue(text: string): string {
  return text.includes('&') ? resolveReferences(Buffer.from(text)).toString() : text;
}

function isNil(attributes: ReadonlyMap<string, string>, namespaces: Namespaces): boolean {
  let nil = false;
  for (const [name, value] of attributes) {
    if (!name.includes(':') || name.startsWith('xmlns:')) continue;
    const { namespace, localName } = namespaces.resolve(name);
    if (namespace === XSI_NAMESPACE && localName === 'nil') nil = ['true', '1'].includes(value.trim());
  }
  return nil;
}
