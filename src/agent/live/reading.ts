/**
 * Text turned back into the bytes of the remote file. A reading walks once through a content and says, from where it
 * stands, which bytes are certain; where the service could not decode it is uncertain and gives none.
 */
import iconv from 'iconv-lite';
import { BYTE_ORDER_MARK, REPLACEMENT, standsAt } from '../../chunk.ts';
import type { Content } from '../ports.ts';

/** Bytes of text that are looked at in one go, and how many are always in sight unless the text ends before. */
const WINDOW_BYTES = 256 * 1024;
const SIGHT_BYTES = 1024;

export interface Reading {
  /** Certain bytes from here on, at most `max`; empty where it is uncertain or at its end. */
  peek(max: number): Promise<Buffer>;
  /** Moves past `count` of the bytes that `peek` showed. */
  advance(count: number): void;
  /** Moves past the replacement characters that stand here, and says how many there were. */
  skipUncertain(): Promise<number>;
  /** Nothing follows. */
  atEnd(): boolean;
  /** Bytes of text that follow; not the bytes of the file if a code page is in use. */
  remaining(): number;
  /** Another reading that stands where this one stands. */
  fork(): Reading;
  /** The same text from here on, taken as that of a code page. */
  asCodePage(codePage: CodePage): Reading;
}

/** The text of a service that decodes UTF-8: its bytes are the file's, up to a U+FFFD. */
export class Utf8Reading implements Reading {
  readonly #content: Content;
  #at: number;
  #window: Buffer = Buffer.alloc(0);
  #windowAt = 0;

  constructor(content: Content, at = 0) {
    this.#content = content;
    this.#at = at;
  }

  fork(): Utf8Reading {
    return new Utf8Reading(this.#content, this.#at);
  }

  asCodePage(codePage: CodePage): Reading {
    return new CodePageReading(this.#content, codePage, this.#at);
  }

  async peek(max: number): Promise<Buffer> {
    const window = await this.#load();
    const uncertain = window.indexOf(REPLACEMENT);
    if (uncertain >= 0) return window.subarray(0, Math.min(uncertain, max));
    // The last two bytes may be the beginning of a U+FFFD that the window cuts.
    const whole = this.#at + window.length >= this.#content.length;
    return window.subarray(0, Math.min(whole ? window.length : window.length - 2, max));
  }

  advance(count: number): void {
    this.#at += count;
  }

  async skipUncertain(): Promise<number> {
    let count = 0;
    while (standsAt(await this.#load(), 0, REPLACEMENT)) {
      this.#at += REPLACEMENT.length;
      count++;
    }
    return count;
  }

  atEnd(): boolean {
    return this.#at >= this.#content.length;
  }

  remaining(): number {
    return this.#content.length - this.#at;
  }

  /** Text from here on: at least SIGHT_BYTES unless the content ends before. */
  async #load(): Promise<Buffer> {
    const end = this.#windowAt + this.#window.length;
    if (this.#at > end || (this.#at + SIGHT_BYTES > end && end < this.#content.length)) {
      this.#window = await this.#content.read(this.#at, this.#at + WINDOW_BYTES);
      this.#windowAt = this.#at;
    }
    return this.#window.subarray(this.#at - this.#windowAt);
  }
}

/** A single-byte code page: which byte each character stands for. */
export class CodePage {
  readonly name: string;
  readonly #byteOf = new Map<number, number>();

  /** Throws RangeError if `name` is not that of a single-byte encoding. */
  constructor(name: string) {
    this.name = name;
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    const characters = iconv.encodingExists(name) ? iconv.decode(bytes, name) : '';
    if (characters.length !== bytes.length) throw new RangeError(`${name} is no single-byte code page`);
    // As in .NET, a byte that the code page leaves undefined is the control character of the same number.
    for (const byte of bytes) {
      const character = characters.charCodeAt(byte);
      this.#byteOf.set(character === 0xfffd ? byte : character, byte);
    }
  }

  /** The bytes of `text` up to the first character the code page does not have. */
  encode(text: string): Buffer {
    const bytes = Buffer.allocUnsafe(text.length);
    for (let index = 0; index < text.length; index++) {
      const byte = this.#byteOf.get(text.charCodeAt(index));
      if (byte === undefined || text.charCodeAt(index) === 0xfffd) return bytes.subarray(0, index);
      bytes[index] = byte;
    }
    return bytes;
  }
}

/** The text of an older service that decodes a single-byte code page: one character is one byte (field notes 1). */
export class CodePageReading implements Reading {
  readonly #content: Content;
  readonly #codePage: CodePage;
  #textAt = 0;
  #bytes: Buffer = Buffer.alloc(0);
  #uncertain = false;

  /** `textAt` is a position in the text, in bytes of UTF-8. */
  constructor(content: Content, codePage: CodePage, textAt = 0) {
    this.#content = content;
    this.#codePage = codePage;
    this.#textAt = textAt;
  }

  fork(): CodePageReading {
    const fork = new CodePageReading(this.#content, this.#codePage, this.#textAt);
    fork.#bytes = this.#bytes;
    fork.#uncertain = this.#uncertain;
    return fork;
  }

  asCodePage(): Reading {
    return this;
  }

  async peek(max: number): Promise<Buffer> {
    if (this.#bytes.length === 0 && !this.#uncertain) await this.#load();
    return this.#bytes.subarray(0, max);
  }

  advance(count: number): void {
    this.#bytes = this.#bytes.subarray(count);
  }

  async skipUncertain(): Promise<number> {
    let count = 0;
    while (this.#uncertain && this.#bytes.length === 0) {
      const text = (await this.#content.read(this.#textAt, this.#textAt + 4)).toString('utf8');
      this.#textAt += Buffer.byteLength(String.fromCodePoint(text.codePointAt(0) ?? 0));
      this.#uncertain = false;
      count++;
      await this.#load();
    }
    return count;
  }

  atEnd(): boolean {
    return this.#bytes.length === 0 && this.#textAt >= this.#content.length;
  }

  remaining(): number {
    return this.#bytes.length + this.#content.length - this.#textAt;
  }

  async #load(): Promise<void> {
    const window = await this.#content.read(this.#textAt, this.#textAt + WINDOW_BYTES);
    // A window may cut a character: what belongs to it comes with the next one.
    const cut = this.#textAt + window.length < this.#content.length ? wholeCharacters(window) : window.length;
    const text = window.toString('utf8', 0, cut);
    this.#bytes = this.#codePage.encode(text);
    this.#uncertain = this.#bytes.length < text.length;
    this.#textAt += this.#uncertain ? Buffer.byteLength(text.slice(0, this.#bytes.length)) : cut;
  }
}

function wholeCharacters(window: Buffer): number {
  let end = window.length - 1;
  while (end > 0 && ((window[end] ?? 0) & 0xc0) === 0x80) end--;
  return end;
}

/** Where a service is asked from so that it cannot swallow a byte-order mark there (field notes 1). */
export function pastByteOrderMark(bytes: Buffer, index: number): number {
  for (const back of [0, 1, 2]) {
    if (index - back >= 0 && standsAt(bytes, index - back, BYTE_ORDER_MARK))
      return index - back + BYTE_ORDER_MARK.length;
  }
  return index;
}
