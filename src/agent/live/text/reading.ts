/**
 * A cursor over decoded text that returns the bytes of the remote file. At its position, bytes are certain, or
 * uncertain: the server could not decode them, and the cursor returns none.
 */
import { BYTE_ORDER_MARK, endOfWholeUtf8, REPLACEMENT, widthOfLead } from '../../../bytes.ts';
import type { Content } from '../../ports.ts';
import type { CodePage } from './encoding.ts';

/** Bytes of text that are read at a time: more each time, because many cursors look at a few bytes only. */
const FIRST_WINDOW_BYTES = 16 * 1024;
const MAX_WINDOW_BYTES = 1024 * 1024;
/** The minimum in a window unless the text ends before. */
const SIGHT_BYTES = 1024;
/** Bytes of text that are encoded at a time. */
const ENCODED_BYTES = 256 * 1024;
const NO_BYTES = Buffer.alloc(0);

/** Makes a reading with the decoder that was identified for a file. */
export type Decode = (text: Content) => Reading;

export class Reading {
  readonly codePage: CodePage | undefined;
  readonly #content: Content;
  /** The position of the cursor in the text. */
  #at: number;
  #window: Buffer = NO_BYTES;
  #windowAt = 0;
  #windowBytes = FIRST_WINDOW_BYTES;
  /** One buffer for all windows of a long text: a new one for each kept the garbage collector busy. */
  #space: Buffer | undefined;
  /** Certain bytes from the cursor on, as far as they are known, and their text if a code page made them. */
  #certain: Buffer = NO_BYTES;
  #text = '';

  /** Without a code page, the text is that of UTF-8: its bytes are those of the file, up to a U+FFFD. */
  constructor(content: Content, codePage?: CodePage, at = 0) {
    this.#content = content;
    this.codePage = codePage;
    this.#at = at;
  }

  /** A new cursor at the same position, perhaps with another code page. */
  fork(codePage: CodePage | undefined = this.codePage): Reading {
    return new Reading(this.#content, codePage, this.#at);
  }

  /** Certain bytes from the cursor on, at most `max`; empty if uncertain, or at the end. Valid until the next call. */
  async peek(max: number): Promise<Buffer> {
    if (this.#certain.length === 0) await this.#encode();
    return this.#certain.subarray(0, max);
  }

  /** Moves past `count` of the bytes that `peek` returned. */
  advance(count: number): void {
    this.#certain = this.#certain.subarray(count);
    if (this.codePage === undefined) this.#at += count;
    else {
      this.#at += Buffer.byteLength(this.#text.slice(0, count));
      this.#text = this.#text.slice(count);
    }
  }

  /** Moves past uncertain characters, at most `max`; returns their number. */
  async skipUncertain(max = Number.POSITIVE_INFINITY): Promise<number> {
    let count = 0;
    for (; count < max && !this.atEnd() && (await this.peek(1)).length === 0; count++) {
      const [first = 0] = await this.#load();
      this.#at += widthOfLead(first);
    }
    return count;
  }

  /** Whether the cursor is at the end of the text. */
  atEnd(): boolean {
    return this.remaining() <= 0;
  }

  /** Bytes of text after the cursor; other than those of the file unless it is UTF-8. */
  remaining(): number {
    return this.#content.length - this.#at;
  }

  /** Text from the cursor on, up to the end of its window. */
  async text(): Promise<string> {
    return this.#wholeCharacters(await this.#load());
  }

  async #encode(): Promise<void> {
    const text = await this.#load();
    if (this.codePage !== undefined) {
      this.#text = this.#wholeCharacters(text.subarray(0, ENCODED_BYTES));
      this.#certain = this.codePage.encode(this.#text);
      return;
    }
    const found = text.indexOf(REPLACEMENT);
    // The last two bytes may be the beginning of a U+FFFD that the window cuts.
    const end = text.length < this.remaining() ? text.length - 2 : text.length;
    this.#certain = text.subarray(0, found >= 0 ? found : end);
  }

  /** Text from here on: at least SIGHT_BYTES unless the content ends before. */
  async #load(): Promise<Buffer> {
    const end = this.#windowAt + this.#window.length;
    if (this.#at > end || (this.#at + SIGHT_BYTES > end && end < this.#content.length)) {
      if (this.#windowBytes === MAX_WINDOW_BYTES) this.#space ??= Buffer.allocUnsafeSlow(MAX_WINDOW_BYTES);
      this.#window = await this.#content.read(this.#at, this.#at + this.#windowBytes, this.#space);
      this.#windowBytes = Math.min(MAX_WINDOW_BYTES, this.#windowBytes * 2);
      this.#windowAt = this.#at;
      this.#certain = NO_BYTES;
    }
    return this.#window.subarray(this.#at - this.#windowAt);
  }

  /** Omits a character that the end of the window cuts: the next window has it. */
  #wholeCharacters(text: Buffer): string {
    return text.toString('utf8', 0, text.length < this.remaining() ? endOfWholeUtf8(text, 0) : text.length);
  }
}

/** A text with the byte-order mark that the server stripped. The caller that received the text releases it. */
export function withMark(content: Content): Content {
  const width = BYTE_ORDER_MARK.length;
  return {
    length: width + content.length,
    async read(start, end, space) {
      const mark = BYTE_ORDER_MARK.subarray(start, end);
      const rest = await content.read(Math.max(0, start - width), Math.max(0, end - width), space);
      return mark.length === 0 ? rest : Buffer.concat([mark, rest]);
    },
    async release() {},
  };
}
