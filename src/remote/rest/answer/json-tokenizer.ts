/**
 * Splits a JSON document (RFC 8259) into its values while its bytes arrive. Strict: what is not well-formed is an error
 * at the place where it shows. Memory is bounded: only the name, number, escape or character that a network chunk cut
 * is held.
 */

import { isUtf8 } from 'node:buffer';
import { endOfWholeUtf8 } from '../../../bytes.ts';
import { JobtailError } from '../../../errors.ts';
import { GrowingBuffer } from '../../../growing-buffer.ts';
import { Chunks } from '../../content/chunks.ts';
import { malformed } from '../../wrong-answers.ts';

const MAX_DEPTH = 64;
const MAX_NAME_BYTES = 256;
/** Of a number, true, false or null: 64 bits have 20 digits. */
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

/** Receives the document in order. */
export interface JsonEvents {
  /** An object or a list begins. */
  open(kind: 'object' | 'list'): void;
  /** The name of the member whose value comes next. */
  member(name: string): void;
  /** The innermost object or list ends. */
  close(): void;
  /** A string begins. Whether `text` itself refuses control characters, but for white space. */
  beginText(): boolean;
  /**
   * Whole characters of it, as UTF-8; only good until the call returns. `length` is that of what stands for them in the
   * document.
   */
  text(bytes: Buffer, length: number): void;
  endText(): void;
  /** A number as it was written, true, false or null. */
  literal(text: string): void;
}

/** What may come next, besides white space. */
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

  /** Takes the next bytes. @throws JobtailError malformed */
  push(chunk: Buffer): void {
    this.#chunks.push(chunk, this.#take);
  }

  /** Ends the document. @throws JobtailError malformed if it is not complete */
  finish(): void {
    // A number at its end is only complete when something else follows.
    this.push(SPACE);
    if (this.#next !== 'nothing' || this.#chunks.restBytes > 0) throw malformed('it ends before its last value');
  }

  /**
   * Takes one piece from `at` on, outside of strings, and returns where the next begins; `at` if more bytes are needed.
   */
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

/** Whatever is no white space and has no meaning of its own: what it is shows when all of it has come. */
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
