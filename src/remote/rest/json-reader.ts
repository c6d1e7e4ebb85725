/**
 * Reads a JSON response while it arrives. Finds where strings begin and end, lifts the bulky ones, and hands each item of
 * the list (or the whole document) to `JSON.parse`, which decides whether it is JSON.
 */
import { isUtf8 } from 'node:buffer';
import { endOfWholeUtf8, GrowingBuffer } from '../../bytes.ts';
import { JobtailError } from '../../errors.ts';
import { Base64Decoder, Chunks, isWhiteSpace } from '../content/chunks.ts';
import type { Lifted } from '../content/lifted.ts';
import { CONTENT, MAX_DEPTH, MAX_ITEM_BYTES, type ReaderOptions, type Value } from '../content/values.ts';
import { malformed, tooLarge } from '../wrong-responses.ts';

const RAW_SPACES = [0x09, 0x0a, 0x0d];
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** What stands before the string that is the content of an item. */
const BEFORE_CONTENT = new RegExp(String.raw`[{,\s]"${CONTENT}"\s*:\s*$`, 'i');
const MAX_BEFORE_CONTENT_BYTES = 256;

export interface JsonRest {
  /** null if the response is a list whose items were taken. */
  readonly value: Value;
  readonly json: string;
}

export class JsonReader {
  readonly #options: ReaderOptions;
  readonly #chunks = new Chunks();
  readonly #take = (bytes: Buffer, at: number) =>
    this.#bulky === undefined ? this.#small(bytes, at) : this.#lift(bytes, at, this.#bulky);
  /** The item under way, or the whole response; a lifted text leaves an empty one. */
  readonly #item = new GrowingBuffer();
  #isBlank = true;
  #list: 'none' | 'open' | 'closed' = 'none';
  #itemCount = 0;
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  #bulky: Lifted | undefined;
  #base64: Base64Decoder | undefined;
  #liftedCount = 0;
  #text: number | undefined;
  #plainBytes = 0;
  #space = Buffer.alloc(0);

  constructor(options: ReaderOptions) {
    this.#options = options;
  }

  /** @throws JobtailError malformed, answer-too-large */
  push(chunk: Buffer): void {
    this.#plainBytes += chunk.length;
    this.#chunks.push(chunk, this.#take);
    if (this.#plainBytes > this.#options.maxBytes) throw tooLarge(`more than ${this.#options.maxBytes} bytes`);
  }

  /** @throws JobtailError malformed */
  finish(): JsonRest {
    const json = this.#item.view().toString();
    const isCut = this.#bulky !== undefined || this.#chunks.restBytes > 0 || this.#list === 'open';
    if (isCut) throw malformed('it ends before its last value');
    if (this.#list === 'none') return { value: parse(this.#item.view()), json };
    if (!this.#isBlank) throw malformed('something after its last value');
    return { value: null, json };
  }

  #small(bytes: Buffer, start: number): number {
    let from = start;
    for (let at = start; at < bytes.length; at += 1) {
      const byte = bytes[at];
      if (this.#isInString) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (byte === BACKSLASH) this.#isEscaped = true;
        else if (byte === QUOTE) this.#isInString = false;
        continue;
      }
      switch (byte) {
        case QUOTE:
          this.#keep(bytes.subarray(from, at));
          from = at;
          this.#beginString();
          if (this.#bulky === undefined) break;
          this.#keep(bytes.subarray(at, at + 1));
          return at + 1;
        case OPEN_OBJECT:
        case OPEN_LIST:
          this.#depth += 1;
          if (this.#depth > MAX_DEPTH) throw malformed(`values nested deeper than ${MAX_DEPTH}`);
          this.#keep(bytes.subarray(from, at));
          from = at;
          if (byte === OPEN_LIST && this.#beginsList()) from = at + 1;
          break;
        case COMMA:
          if (this.#list !== 'open' || this.#depth !== 1) break;
          this.#keep(bytes.subarray(from, at));
          from = at + 1;
          this.#endItem();
          break;
        case CLOSE_OBJECT:
        case CLOSE_LIST:
          this.#depth -= 1;
          if (this.#list !== 'open' || this.#depth !== 0) break;
          if (byte !== CLOSE_LIST) throw malformed('the end of an object where none may stand');
          this.#keep(bytes.subarray(from, at));
          from = at + 1;
          this.#endList();
      }
    }
    this.#keep(bytes.subarray(from));
    return bytes.length;
  }

  #keep(bytes: Buffer): void {
    this.#isBlank &&= isWhiteSpace(bytes);
    this.#item.append(bytes);
    if (this.#item.length > MAX_ITEM_BYTES) throw tooLarge(`more than ${MAX_ITEM_BYTES} bytes in one item`);
  }

  #beginString(): void {
    const { lifted } = this.#options;
    if (lifted === undefined || !this.#isBulky(lifted)) {
      this.#isInString = true;
      return;
    }
    if (this.#text !== undefined) throw malformed('an entry with more than one content');
    this.#text = this.#liftedCount++;
    this.#bulky = lifted;
    this.#base64 = lifted.encoding === 'base64' ? new Base64Decoder() : undefined;
    lifted.begin();
  }

  #isBulky({ encoding }: Lifted): boolean {
    if (encoding === 'base64') return this.#depth === 0 && this.#isBlank;
    if (this.#list !== 'open' || this.#depth !== 2) return false;
    const item = this.#item.view();
    return BEFORE_CONTENT.test(item.toString('latin1', Math.max(0, item.length - MAX_BEFORE_CONTENT_BYTES)));
  }

  #lift(bytes: Buffer, at: number, lifted: Lifted): number {
    const { bytes: characters, next } = readCharacters(bytes, at, this.#base64 !== undefined, () =>
      this.#spaceFor(bytes),
    );
    this.#plainBytes -= next - at;
    const decoded = this.#base64?.push(characters) ?? characters;
    if (decoded.length > 0) lifted.bytes(decoded);
    if (bytes[next] !== QUOTE) return next;
    this.#base64?.finish();
    lifted.end();
    this.#bulky = undefined;
    // The quote that ends the empty text.
    this.#keep(bytes.subarray(next, next + 1));
    return next + 1;
  }

  #spaceFor(bytes: Buffer): Buffer {
    if (this.#space.length < bytes.length) this.#space = Buffer.allocUnsafe(bytes.length);
    return this.#space;
  }

  #beginsList(): boolean {
    const { onItem } = this.#options;
    if (onItem === undefined || this.#list !== 'none' || this.#depth !== 1 || !this.#isBlank) return false;
    this.#list = 'open';
    this.#clear();
    return true;
  }

  #endItem(): void {
    const value = parse(this.#item.view());
    this.#options.onItem?.(value, this.#text);
    this.#clear();
    this.#itemCount += 1;
    this.#text = undefined;
  }

  #endList(): void {
    if (this.#itemCount > 0 || !this.#isBlank) this.#endItem();
    this.#list = 'closed';
    this.#clear();
  }

  #clear(): void {
    this.#item.clear();
    this.#isBlank = true;
  }
}

/** @throws JobtailError malformed */
function parse(bytes: Buffer): Value {
  if (!isUtf8(bytes)) throw malformed('bytes that are not UTF-8');
  const json = bytes.toString();
  try {
    const value: unknown = JSON.parse(json);
    return asValue(HAS_LONG.test(json) ? JSON.parse(quoteLongs(json)) : value);
  } catch (error) {
    throw error instanceof JobtailError ? error : malformed('something that is no JSON');
  }
}

/** Whole numbers that a JavaScript number may not represent. */
const HAS_LONG = /[0-9]{16}/;
const LONG = /^-?[0-9]{16,}$/;
/** Of valid JSON, so each string has an end. */
const STRING_OR_NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*"?|-?[0-9.]+(?:[eE][+-]?[0-9]+)?/g;

const quoteLongs = (json: string) =>
  json.replace(STRING_OR_NUMBER, (found) => (LONG.test(found) ? `"${found}"` : found));

function asValue(value: unknown): Value {
  if (value === null) return null;
  if (Array.isArray(value)) return value.map(asValue);
  if (typeof value !== 'object') {
    const text = String(value);
    if (!text.isWellFormed()) throw loneSurrogate();
    return text;
  }
  const fields = new Map<string, Value>();
  for (const [name, inner] of Object.entries(value)) {
    const key = name.toLowerCase();
    if (fields.has(key)) throw malformed('an object with two members of one name');
    fields.set(key, asValue(inner));
  }
  return fields;
}

const LOWER_U = 0x75;
/** Length of `\uXXXX`; other escapes have two bytes. */
const UNIT_BYTES = 6;

/** Strings of this size stay in the processor's cache. */
const PIECE_BYTES = 32 * 1024;

const HIGH_SURROGATE = /^\\u[dD][89abAB]/;

interface Characters {
  /** Whole characters in UTF-8; valid until the next ones are read into the same space. */
  readonly bytes: Buffer;
  /** The next byte to read: the quote at the end of the string, more characters, or an incomplete one. */
  readonly next: number;
}

/** The characters from `start` that arrived. `space`: as large as the bytes. @throws JobtailError malformed */
function readCharacters(bytes: Buffer, start: number, isBase64: boolean, space: () => Buffer): Characters {
  const piece = bytes.subarray(start, start + PIECE_BYTES);
  const quote = endOfString(piece);
  const end = quote === -1 ? endOfWhole(piece) : quote;
  const whole = piece.subarray(0, end);
  if (!isUtf8(whole)) throw malformed('bytes that are not UTF-8');
  // The decoder of base64 refuses all other characters that must be escaped.
  const isPlain = isBase64 && !whole.includes(BACKSLASH);
  if (isPlain && RAW_SPACES.some((space) => whole.includes(space))) throw wrongString();
  return { bytes: isPlain ? whole : resolveEscapes(whole, space()), next: start + end };
}

/** Where the quote at its end is; -1 if it is not in the piece. */
function endOfString(piece: Buffer): number {
  let quote = piece.indexOf(QUOTE);
  while (quote !== -1 && beginsEscape(piece, quote - 1)) quote = piece.indexOf(QUOTE, quote + 1);
  return quote;
}

function beginsEscape(piece: Buffer, at: number): boolean {
  let first = at;
  while (first >= 0 && piece[first] === BACKSLASH) first -= 1;
  return (at - first) % 2 === 1;
}

/** Where the piece can be cut: before an incomplete character, escape or surrogate pair. */
function endOfWhole(piece: Buffer): number {
  const end = endOfWholeUtf8(piece, 0);
  const last = piece.lastIndexOf(BACKSLASH);
  if (last < Math.max(0, end - UNIT_BYTES) || !beginsEscape(piece, last)) return end;
  if (last + 1 < end && piece[last + 1] !== LOWER_U) return end;
  // A half of a surrogate pair waits for the other half.
  const before = last - UNIT_BYTES;
  const isOfPair = before >= 0 && isHighSurrogate(piece, before) && beginsEscape(piece, before);
  return isOfPair ? before : last;
}

const isHighSurrogate = (piece: Buffer, at: number) =>
  HIGH_SURROGATE.test(piece.toString('latin1', at, at + UNIT_BYTES));

function resolveEscapes(whole: Buffer, space: Buffer): Buffer {
  // Other escapes stand for ASCII, so each byte can be one character, which is much faster.
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

/** The response is valid JSON, but no file contains half a character. */
function loneSurrogate(): JobtailError {
  return new JobtailError(
    'malformed',
    'a text of the response contains half of a surrogate pair, which represents no bytes',
    {
      hint: 'report to the operator of the service that it sends text that no file contains',
    },
  );
}
