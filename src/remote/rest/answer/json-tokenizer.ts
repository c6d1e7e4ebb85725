/**
 * Splits a JSON document (RFC 8259) into its values while its bytes arrive. Strict: what is not well-formed is an error
 * at the place where it shows. Memory is bounded: only the name, number, escape or character that a network chunk cut
 * is held.
 */
import { GrowingBuffer } from '../../../growing-buffer.ts';
import { Chunks } from '../../content/chunks.ts';
import { malformed } from '../../wrong-answers.ts';
import { QUOTE, readCharacters } from './json-text.ts';

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
    if (this.#next !== 'nothing' || this.#chunks.heldBytes > 0) throw malformed('it ends before its last value');
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
