/**
 * Splits a JSON document (RFC 8259) into values while its bytes arrive; the first violation is an error. Memory is
 * bounded: only a name, number, escape or character cut by a network chunk is kept.
 */
import { isUtf8 } from 'node:buffer';
import { endOfWholeUtf8, GrowingBuffer } from '../../../bytes.ts';
import { JobtailError } from '../../../errors.ts';
import { Chunks } from '../../content/chunks.ts';
import { malformed } from '../../wrong-answers.ts';

const MAX_DEPTH = 64;
const MAX_NAME_BYTES = 256;
/** Maximum length of a number, true, false or null: 64 bits have 20 digits. */
const MAX_LITERAL_BYTES = 64;

const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

const NUMBER = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/;
const WORDS: ReadonlySet<string> = new Set(['true', 'false', 'null']);

const SPACE = Buffer.from(' ');

export interface JsonEvents {
  open(kind: 'object' | 'list'): void;
  member(name: string): void;
  close(): void;
  /** A string begins. Returns whether `text` itself refuses control characters other than white space. */
  beginText(): boolean;
  /** Whole characters of the string, as UTF-8; valid until the call returns. `length`: their bytes in the document. */
  text(bytes: Buffer, length: number): void;
  endText(): void;
  literal(text: string): void;
}

type Next = 'value' | 'first item' | 'name' | 'first name' | 'colon' | 'comma' | 'nothing';

export class JsonTokenizer {
  readonly #events: JsonEvents;
  readonly #open: ('object' | 'list')[] = [];
  readonly #chunks = new Chunks();
  readonly #take = (bytes: Buffer, at: number) =>
    this.#inside === undefined ? this.#step(bytes, at) : this.#characters(bytes, at, this.#inside);
  readonly #name = new GrowingBuffer();
  #inside: 'name' | 'text' | undefined;
  #isChecked = false;
  #next: Next = 'value';
  #space = Buffer.alloc(0);

  constructor(events: JsonEvents) {
    this.#events = events;
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk, this.#take);
  }

  finish(): void {
    // A number at the end is complete only when something else follows.
    this.push(SPACE);
    if (this.#next !== 'nothing' || this.#chunks.restBytes > 0) throw malformed('it ends before its last value');
  }

  /** Reads one piece outside of strings; returns where the next one begins; `at` if it needs more bytes. */
  #step(bytes: Buffer, at: number): number {
    switch (bytes[at]) {
      case 0x20:
      case 0x0a:
      case 0x0d:
      case 0x09:
        return at + 1;
      case QUOTE:
        this.#beginString();
        return at + 1;
      case COMMA:
        this.#expect('comma', 'a comma');
        this.#next = this.#open.at(-1) === 'object' ? 'name' : 'value';
        return at + 1;
      case COLON:
        this.#expect('colon', 'a colon');
        this.#next = 'value';
        return at + 1;
      case OPEN_OBJECT:
        this.#openOne('object', 'first name');
        return at + 1;
      case OPEN_ARRAY:
        this.#openOne('list', 'first item');
        return at + 1;
      case CLOSE_OBJECT:
        this.#closeOne('object', 'first name');
        return at + 1;
      case CLOSE_ARRAY:
        this.#closeOne('list', 'first item');
        return at + 1;
      default:
        return this.#literal(bytes, at);
    }
  }

  #beginString(): void {
    if (this.#next === 'name' || this.#next === 'first name') {
      this.#inside = 'name';
      this.#isChecked = false;
      this.#name.clear();
    } else {
      this.#expectValue();
      this.#inside = 'text';
      this.#isChecked = this.#events.beginText();
    }
  }

  #characters(bytes: Buffer, at: number, inside: 'name' | 'text'): number {
    const { bytes: characters, next } = readCharacters(bytes, at, {
      space: () => this.#spaceFor(bytes),
      isChecked: this.#isChecked,
    });
    if (inside === 'name') this.#addToName(characters);
    else if (characters.length > 0) this.#events.text(characters, next - at);
    if (bytes[next] !== QUOTE) return next;
    this.#inside = undefined;
    if (inside === 'name') {
      this.#next = 'colon';
      this.#events.member(this.#name.view().toString());
    } else {
      this.#events.endText();
      this.#endValue();
    }
    return next + 1;
  }

  #spaceFor(bytes: Buffer): Buffer {
    if (this.#space.length < bytes.length) this.#space = Buffer.allocUnsafe(bytes.length);
    return this.#space;
  }

  #addToName(characters: Buffer): void {
    if (this.#name.length + characters.length > MAX_NAME_BYTES)
      throw malformed(`a name longer than ${MAX_NAME_BYTES} bytes`);
    this.#name.append(characters);
  }

  #literal(bytes: Buffer, at: number): number {
    let end = at;
    while (end < bytes.length && isOfLiteral(bytes[end] as number)) end += 1;
    if (end - at > MAX_LITERAL_BYTES) throw malformed(`a value longer than ${MAX_LITERAL_BYTES} characters`);
    if (end === bytes.length) return at;
    const text = bytes.toString('latin1', at, end);
    if (!WORDS.has(text) && !NUMBER.test(text)) throw malformed('something that is no JSON');
    this.#expectValue();
    this.#events.literal(text);
    this.#endValue();
    return end;
  }

  #openOne(kind: 'object' | 'list', next: Next): void {
    this.#expectValue();
    if (this.#open.length === MAX_DEPTH) throw malformed(`values nested deeper than ${MAX_DEPTH}`);
    this.#open.push(kind);
    this.#next = next;
    this.#events.open(kind);
  }

  #closeOne(kind: 'object' | 'list', first: Next): void {
    const isEnd = this.#open.at(-1) === kind && (this.#next === 'comma' || this.#next === first);
    if (!isEnd) throw malformed(`the end of ${kind === 'list' ? 'a list' : 'an object'} where none may stand`);
    this.#open.pop();
    this.#events.close();
    this.#endValue();
  }

  #expect(next: Next, what: string): void {
    if (this.#next !== next) throw malformed(`${what} where none may stand`);
  }

  #expectValue(): void {
    if (this.#next !== 'value' && this.#next !== 'first item') throw malformed('a value where none may stand');
  }

  #endValue(): void {
    this.#next = this.#open.length === 0 ? 'nothing' : 'comma';
  }
}

/** Whether a byte may belong to a literal, which is checked when it is complete. */
function isOfLiteral(byte: number): boolean {
  switch (byte) {
    case 0x20:
    case 0x0a:
    case 0x0d:
    case 0x09:
    case QUOTE:
    case COMMA:
    case COLON:
    case OPEN_ARRAY:
    case CLOSE_ARRAY:
    case OPEN_OBJECT:
    case CLOSE_OBJECT:
      return false;
    default:
      return true;
  }
}

export const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const LOWER_U = 0x75;
/** Characters below must be escaped. */
const FIRST_PLAIN = 0x20;

/** Length of `\uXXXX`; other escapes have two bytes. */
const UNIT_BYTES = 6;

/** Strings of this size stay in the processor's cache. */
const PIECE_BYTES = 32 * 1024;

/** Short strings are searched here, because a call into the platform costs more. */
const NEAR_BYTES = 64;

const HIGH_SURROGATE = /^\\u[dD][89abAB]/;

export interface Characters {
  /** Whole characters in UTF-8; valid until the next ones are read into the same space. */
  readonly bytes: Buffer;
  /** The next byte to read: the quote at the end of the string, more characters, or an incomplete one. */
  readonly next: number;
}

export interface Reading {
  /** For strings with escapes: as large as the bytes that are read. */
  readonly space: () => Buffer;
  /** Whether the receiver refuses characters that must be escaped. */
  readonly isChecked: boolean;
}

/** The characters of the string from `start` on, as far as they have arrived. @throws JobtailError malformed */
function readCharacters(bytes: Buffer, start: number, { space, isChecked }: Reading): Characters {
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
  // The highest bit stays set where a byte is below 0x20.
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

function endOfString(piece: Buffer, from: number): number {
  let quote = piece.indexOf(QUOTE, from);
  while (quote !== -1 && beginsEscape(piece, quote - 1)) quote = piece.indexOf(QUOTE, quote + 1);
  return quote === -1 ? piece.length : quote;
}

function beginsEscape(piece: Buffer, at: number): boolean {
  let first = at;
  while (first >= 0 && piece[first] === BACKSLASH) first -= 1;
  return (at - first) % 2 === 1;
}

/** Where the piece can be cut: before an incomplete character, escape or surrogate pair. */
function endOfWhole(piece: Buffer, firstEscape: number): number {
  const end = endOfWholeUtf8(piece, 0);
  const last = piece.lastIndexOf(BACKSLASH, end - 1);
  if (last < Math.max(firstEscape, end - UNIT_BYTES) || !beginsEscape(piece, last)) return end;
  if (last + 1 < end && piece[last + 1] !== LOWER_U) return end;
  // A half of a surrogate pair waits for the other half.
  const before = last - UNIT_BYTES;
  const isOfPair = before >= firstEscape && isHighSurrogate(piece, before) && beginsEscape(piece, before);
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
