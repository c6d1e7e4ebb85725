/** Cursors over decoded text: return bytes, or none where the server could not decode them; and what two of them agree about. */
import { isAscii } from 'node:buffer';
import type { Content } from '../../agent/ports/server.ts';
import { commonLength, REPLACEMENT, widthOfLead } from '../../bytes.ts';

/** Bytes of text that are read at a time. */
const WINDOW_BYTES = 64 * 1024;
/** The minimum in a window unless the text ends before. */
const SIGHT_BYTES = 1024;
const NO_BYTES = Buffer.alloc(0);
/** Bytes after a cut character that must be equal, as far as both responses show them. */
const FOLLOWING_BYTES = 1024;

export class TextCursor {
  /** Only ASCII characters are certain: it is unknown how the server decodes others. */
  readonly isAsciiOnly: boolean;
  readonly #content: Content;
  /** The position of the cursor in the text. */
  #at: number;
  #window: Buffer = NO_BYTES;
  #windowAt = 0;
  /** Certain bytes from the cursor on, as far as they are known. */
  #certain: Buffer = NO_BYTES;

  constructor(content: Content, isAsciiOnly = false, at = 0) {
    this.#content = content;
    this.isAsciiOnly = isAsciiOnly;
    this.#at = at;
  }

  /** A new cursor at the same position. */
  fork(isAsciiOnly = this.isAsciiOnly): TextCursor {
    return new TextCursor(this.#content, isAsciiOnly, this.#at);
  }

  /** Certain bytes from the cursor on, at most `max`; empty if uncertain, or at the end. Valid until the next call. */
  async peek(max: number): Promise<Buffer> {
    if (this.#certain.length === 0) {
      const text = await this.#load();
      const isLast = this.#windowAt + this.#window.length >= this.#content.length;
      this.#certain = certainOf(text, this.isAsciiOnly, isLast);
    }
    return this.#certain.subarray(0, max);
  }

  /** Moves past `count` of the bytes that `peek` returned. */
  advance(count: number): void {
    this.#certain = this.#certain.subarray(count);
    this.#at += count;
  }

  /** Moves past the certain bytes; returns their number. */
  async skipCertain(): Promise<number> {
    const from = this.#at;
    for (let count = 1; count > 0; this.advance(count)) count = (await this.peek(WINDOW_BYTES)).length;
    return this.#at - from;
  }

  /** Moves past uncertain characters; returns their number. */
  async skipUncertain(): Promise<number> {
    let count = 0;
    for (; !this.atEnd() && (await this.peek(1)).length === 0; count++) {
      const [first = 0] = await this.#load();
      this.#at += widthOfLead(first);
    }
    return count;
  }

  /** Whether the cursor is at the end of the text. */
  atEnd(): boolean {
    return this.#at >= this.#content.length;
  }

  /** Text from here on: at least SIGHT_BYTES unless the content ends before. */
  async #load(): Promise<Buffer> {
    const end = this.#windowAt + this.#window.length;
    if (this.#at > end || (this.#at + SIGHT_BYTES > end && end < this.#content.length)) {
      this.#window = await this.#content.read(this.#at, this.#at + WINDOW_BYTES);
      this.#windowAt = this.#at;
      this.#certain = NO_BYTES;
    }
    return this.#window.subarray(this.#at - this.#windowAt);
  }
}

/** The certain bytes at the start of a text. */
export function certainOf(text: Buffer, isAsciiOnly: boolean, isLast: boolean): Buffer {
  if (isAsciiOnly)
    return isAscii(text)
      ? text
      : text.subarray(
          0,
          text.findIndex((byte) => byte >= 0x80),
        );
  const found = text.indexOf(REPLACEMENT);
  // The last two bytes may be the beginning of a U+FFFD that the window cuts.
  return text.subarray(0, found >= 0 ? found : isLast ? text.length : text.length - 2);
}

/**
 * Moves both cursors, which are at one offset of the file, past the next bytes, at most `max` or one block, and returns
 * these; empty if neither response shows what follows; undefined if they contradict each other. The edge of a block cuts a
 * character in one response; in the other one, which was requested half a block later, it is whole. It counts if both go
 * on alike after it: otherwise the file changed between them.
 */
export async function nextAgreed(first: TextCursor, second: TextCursor, max: number): Promise<Buffer | undefined> {
  const [ours, theirs] = [await first.peek(max), await second.peek(max)];
  if (ours.length > 0 && theirs.length > 0) {
    const common = commonLength(ours, theirs);
    first.advance(common);
    second.advance(common);
    return common === 0 ? undefined : ours.subarray(0, common);
  }
  // All of the first response is taken, or neither shows what follows.
  if (first.atEnd() || (ours.length === 0 && theirs.length === 0)) return NO_BYTES;
  const [shown, cut] = ours.length > 0 ? [first, second] : [second, first];
  const bytes = Buffer.from(await shown.peek(4 + FOLLOWING_BYTES));
  const width = widthOfLead(bytes[0] ?? 0);
  // The second response may have ended before: the file grew between them, or shrank.
  if (cut.atEnd()) return undefined;
  // No decoder makes U+FFFD of an ASCII character.
  if (width === 1 || bytes.length < width) return undefined;
  const past = cut.fork();
  await past.skipUncertain();
  // The first response ends within a character: nothing after it shows that the second one is of the same content.
  if (cut === first && past.atEnd()) return NO_BYTES;
  await cut.skipUncertain();
  const after = bytes.subarray(width);
  const follows = await cut.peek(FOLLOWING_BYTES);
  // The one that shows the character ends with it, and the other one goes on: it may be of a later content.
  if (after.length === 0 && follows.length > 0) return NO_BYTES;
  const common = commonLength(after, follows);
  if (common < Math.min(after.length, follows.length)) return undefined;
  shown.advance(width + common);
  cut.advance(common);
  return bytes.subarray(0, width + common);
}
