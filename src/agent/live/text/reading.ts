/**
 * A cursor over decoded text that returns the bytes of the remote file. At its position, bytes are certain, or
 * uncertain: the server could not decode them, and the cursor returns none.
 */
import { REPLACEMENT, standsAt } from '../../../bytes.ts';
import type { Content } from '../../ports.ts';
import type { Encoder } from './encoders.ts';

/** Bytes of text that are read at a time, and the minimum in a window unless the text ends before. */
const WINDOW_BYTES = 1024 * 1024;
const SIGHT_BYTES = 1024;
/** Bytes of text that are encoded at a time. */
const ENCODED_WINDOW_BYTES = 256 * 1024;

/** Text from the cursor on: all of it (`whole`), or at least SIGHT_BYTES. */
export interface TextWindow {
  readonly bytes: Buffer;
  readonly whole: boolean;
}

export interface Reading {
  /** Certain bytes from the cursor on, at most `max`; empty if uncertain, or at the end. Valid until the next call. */
  peek(max: number): Promise<Buffer>;
  /** Moves past `count` of the bytes that `peek` returned. */
  advance(count: number): void;
  /** Moves past uncertain characters, at most `max`; returns their number. */
  skipUncertain(max?: number): Promise<number>;
  /** Bytes of each uncertain character; undefined if that is unknown. */
  readonly uncertainBytes: number | undefined;
  /** Whether the cursor is at the end of the text. */
  atEnd(): boolean;
  /** Bytes of text after the cursor; other than those of the file unless it is UTF-8. */
  remaining(): number;
  /** A new cursor at the same position. */
  fork(): Reading;
  /** Text from the cursor on, up to the end of its window. */
  text(): Promise<string>;
  /** A cursor at the same position for another decoder. */
  as(encoder: Encoder): Reading;
}

/** Text of a server that decodes UTF-8: its bytes are those of the file, up to a U+FFFD. */
export class Utf8Reading implements Reading {
  readonly uncertainBytes = undefined;
  readonly #content: Content;
  #at: number;
  #window: Buffer = Buffer.alloc(0);
  #windowAt = 0;
  /** One buffer for all windows of a long text: a new one for each kept the garbage collector busy. */
  #space: Buffer | undefined;
  /** End of the certain text in the window; unknown if it is before the cursor. */
  #uncertainAt = -1;

  constructor(content: Content, at = 0) {
    this.#content = content;
    this.#at = at;
  }

  fork(): Utf8Reading {
    return new Utf8Reading(this.#content, this.#at);
  }

  async text(): Promise<string> {
    return wholeCharacters(await this.window());
  }

  as(encoder: Encoder): Reading {
    return new EncodedReading(this.#content, encoder, this.#at);
  }

  /** The window from the cursor on; valid until the next call. */
  async window(): Promise<TextWindow> {
    const bytes = await this.#load();
    return { bytes, whole: this.#at + bytes.length >= this.#content.length };
  }

  async peek(max: number): Promise<Buffer> {
    const { bytes, whole } = await this.window();
    if (this.#uncertainAt < this.#at) {
      const found = bytes.indexOf(REPLACEMENT);
      // The last two bytes may be the beginning of a U+FFFD that the window cuts.
      this.#uncertainAt = this.#at + (found >= 0 ? found : whole ? bytes.length : bytes.length - 2);
    }
    return bytes.subarray(0, Math.min(max, this.#uncertainAt - this.#at));
  }

  advance(count: number): void {
    this.#at += count;
  }

  async skipUncertain(max = Number.POSITIVE_INFINITY): Promise<number> {
    let count = 0;
    while (count < max && standsAt(await this.#load(), 0, REPLACEMENT)) {
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
      if (this.remaining() > WINDOW_BYTES) this.#space ??= Buffer.allocUnsafeSlow(WINDOW_BYTES);
      this.#window = await this.#content.read(this.#at, this.#at + WINDOW_BYTES, this.#space);
      this.#windowAt = this.#at;
      this.#uncertainAt = -1;
    }
    return this.#window.subarray(this.#at - this.#windowAt);
  }
}

/** Text of a code page, or of UTF-16: its bytes are encoded again. */
export class EncodedReading implements Reading {
  readonly encoder: Encoder;
  readonly #content: Content;
  /** Position in the text after the encoded part. */
  #textAt: number;
  /** The encoded text, and those of its bytes that are after the cursor. */
  #text = '';
  #bytes: Buffer = Buffer.alloc(0);
  #uncertain = false;

  /** `textAt` is a position in the text, in bytes of UTF-8. */
  constructor(content: Content, encoder: Encoder, textAt = 0) {
    this.#content = content;
    this.encoder = encoder;
    this.#textAt = textAt;
  }

  fork(): EncodedReading {
    const fork = new EncodedReading(this.#content, this.encoder, this.#textAt);
    fork.#text = this.#text;
    fork.#bytes = this.#bytes;
    fork.#uncertain = this.#uncertain;
    return fork;
  }

  async text(): Promise<string> {
    return wholeCharacters(await this.#window(this.#here()));
  }

  as(encoder: Encoder): Reading {
    return new EncodedReading(this.#content, encoder, this.#here());
  }

  async peek(max: number): Promise<Buffer> {
    if (this.#bytes.length === 0 && !this.#uncertain) await this.#load();
    return this.#bytes.subarray(0, max);
  }

  advance(count: number): void {
    this.#bytes = this.#bytes.subarray(count);
  }

  /** Each code page has one byte for a character. */
  get uncertainBytes(): number | undefined {
    return this.encoder.unitBytes === 1 ? 1 : undefined;
  }

  async skipUncertain(max = Number.POSITIVE_INFINITY): Promise<number> {
    let count = 0;
    while (count < max && this.#uncertain && this.#bytes.length === 0) {
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

  /** Position of the cursor in the text. */
  #here(): number {
    const units = this.#bytes.length / this.encoder.unitBytes;
    return this.#textAt - Buffer.byteLength(this.#text.slice(this.#text.length - units));
  }

  async #load(): Promise<void> {
    const text = wholeCharacters(await this.#window(this.#textAt));
    this.#bytes = this.encoder.encode(text);
    const units = this.#bytes.length / this.encoder.unitBytes;
    this.#uncertain = units < text.length;
    this.#text = text.slice(0, units);
    this.#textAt += Buffer.byteLength(this.#text);
  }

  async #window(at: number): Promise<TextWindow> {
    const bytes = await this.#content.read(at, at + ENCODED_WINDOW_BYTES);
    return { bytes, whole: at + bytes.length >= this.#content.length };
  }
}

/** Omits a character that the end of the window cuts: the next window has it. */
function wholeCharacters({ bytes, whole }: TextWindow): string {
  let end = bytes.length;
  if (!whole) for (end--; end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80; ) end--;
  return bytes.toString('utf8', 0, end);
}
