/**
 * Text turned back into the bytes of the remote file. A reading walks once through a content and says, from where it
 * stands, which bytes are certain; where the service could not decode it is uncertain and gives none.
 */
import { REPLACEMENT, standsAt } from '../../../bytes.ts';
import type { Content } from '../../ports.ts';
import type { Encoder } from './encoders.ts';

/** Bytes of text that are read in one go, and how many are always in sight unless the text ends before. */
const WINDOW_BYTES = 1024 * 1024;
const SIGHT_BYTES = 1024;
/** Bytes of text that are encoded in one go. */
const ENCODED_WINDOW_BYTES = 256 * 1024;

/** Text from where a reading stands on, as it was handed out: all of it (`whole`), or at least SIGHT_BYTES. */
export interface TextWindow {
  readonly bytes: Buffer;
  readonly whole: boolean;
}

export interface Reading {
  /** Certain bytes from here on, at most `max`; empty where it is uncertain or at its end. Good until the next call. */
  peek(max: number): Promise<Buffer>;
  /** Moves past `count` of the bytes that `peek` showed. */
  advance(count: number): void;
  /** Moves past the characters that are uncertain here, at most `most` of them, and says how many these were. */
  skipUncertain(most?: number): Promise<number>;
  /** Bytes that stand behind each character where it is uncertain; undefined if nothing says so. */
  readonly uncertainBytes: number | undefined;
  /** Nothing follows. */
  atEnd(): boolean;
  /** Bytes of text that follow; not the bytes of the file if it is no UTF-8. */
  remaining(): number;
  /** Another reading that stands where this one stands. */
  fork(): Reading;
  /** Text from here on, as much as is in sight. */
  text(): Promise<string>;
  /** The same text from here on, taken as that of another decoder. */
  as(encoder: Encoder): Reading;
}

/** The text of a service that decodes UTF-8: its bytes are the file's, up to a U+FFFD. */
export class Utf8Reading implements Reading {
  readonly uncertainBytes = undefined;
  readonly #content: Content;
  #at: number;
  #window: Buffer = Buffer.alloc(0);
  #windowAt = 0;
  /** Where the windows of a long text stand, one after the other: to make each anew kept the collector busy. */
  #space: Buffer | undefined;
  /** Up to where the text in the window is certain; known if it is not behind. */
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

  /** What is in sight from here on; good until the next call. */
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

  async skipUncertain(most = Number.POSITIVE_INFINITY): Promise<number> {
    let count = 0;
    while (count < most && standsAt(await this.#load(), 0, REPLACEMENT)) {
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

/** The text of a decoder whose bytes have to be made anew: of a code page, or of UTF-16. */
export class EncodedReading implements Reading {
  readonly encoder: Encoder;
  readonly #content: Content;
  /** Where the text goes on behind what was encoded. */
  #textAt: number;
  /** Text that was encoded, and the last of its bytes: those that follow. */
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

  /** Of several code pages, each has one byte for it. */
  get uncertainBytes(): number | undefined {
    return this.encoder.unitBytes === 1 ? 1 : undefined;
  }

  async skipUncertain(most = Number.POSITIVE_INFINITY): Promise<number> {
    let count = 0;
    while (count < most && this.#uncertain && this.#bytes.length === 0) {
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

  /** Where the text goes on behind the bytes that were advanced over. */
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

/** A window may cut a character: what belongs to it comes with the next one. */
function wholeCharacters({ bytes, whole }: TextWindow): string {
  let end = bytes.length;
  if (!whole) for (end--; end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80; ) end--;
  return bytes.toString('utf8', 0, end);
}
