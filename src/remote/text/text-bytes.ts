/** The bytes of one live file as far as text shows them: one response, and a second one where it cuts characters. */
import type { BytesRequest, LiveBytes, RawFile, WhatFollows } from '../../agent/ports/live-source.ts';
import type { Part } from '../../agent/ports/server.ts';
import { REPLACEMENT, standsAt, startsAlike } from '../../bytes.ts';
import { HALF_BLOCK_BYTES, shownWidth, UNCUT_BYTES } from './blocks.ts';
import { certainOf, nextAgreed, TextCursor } from './cursor.ts';

/** A longer text is not kept to be compared with the next one. */
const MAX_SAMENESS_BYTES = 4 * 1024;
const NONE = Buffer.alloc(0);

/** What a second response is requested for. start: whether the server stripped a byte-order mark from the first one. */
type Doubt = { readonly kind: 'start' | 'cut'; readonly offset: number };

export class TextBytes implements LiveBytes {
  readonly part: Part;
  readonly raw: RawFile;
  readonly isRaw = false;
  readonly #isAsciiOnly: boolean;
  readonly #first: TextCursor;
  #second: TextCursor | undefined;
  #secondFrom = Number.POSITIVE_INFINITY;
  readonly #parts: Part[];
  /** Where in the file the cursor is. */
  #at: number;
  /** Bytes that two responses agreed about, and that were not asked for yet. */
  #left: Buffer = NONE;
  #isStartCertain: boolean;
  /** The text from the second byte on was empty: the first byte alone is asked for again. */
  #isLone = false;
  /** Known after the last certain byte. */
  #following: WhatFollows | undefined;
  #sameness: string | undefined;
  /** The text ends in U+FFFD. */
  #hidesLastByte = false;

  private constructor(part: Part, request: BytesRequest, isAsciiOnly: boolean, raw: (text: TextBytes) => RawFile) {
    this.part = part;
    this.#parts = [part];
    this.#at = part.offset;
    this.#isAsciiOnly = isAsciiOnly;
    this.#first = new TextCursor(part.content, isAsciiOnly);
    const isEmpty = part.content.length === 0;
    this.#isStartCertain = request.known > 0 || (isEmpty && !request.isThorough);
    // A mark may be at an offset after which nothing is known: it would change the text.
    if (part.isBeginning || (request.from > 0 && request.known === 0)) this.#following = 'hidden';
    this.raw = raw(this);
  }

  static async of(part: Part, request: BytesRequest, isAsciiOnly: boolean, raw: (text: TextBytes) => RawFile) {
    const made = new TextBytes(part, request, isAsciiOnly, raw);
    const { content } = part;
    const isKept = content.length <= MAX_SAMENESS_BYTES && !part.isBeginning;
    const start = isKept ? 0 : Math.max(0, content.length - REPLACEMENT.length);
    const end = await content.read(start, content.length);
    if (isKept) made.#sameness = end.toString('latin1');
    made.#hidesLastByte =
      end.length >= REPLACEMENT.length && standsAt(end, end.length - REPLACEMENT.length, REPLACEMENT);
    return made;
  }

  get from(): number {
    return this.part.offset;
  }

  get size(): number {
    return this.part.content.length;
  }

  /** One character a byte. */
  get sameness(): string | undefined {
    return this.#sameness;
  }

  get isEndCertain(): boolean {
    return this.size === 0 ? this.from === 0 : !this.part.isBeginning && !this.#hidesLastByte;
  }

  get relativePath(): string | null {
    return this.part.relativePath;
  }

  /** What has to be requested before its bytes are read; undefined if there is nothing more. */
  async doubt(): Promise<Doubt | undefined> {
    if (this.#following !== undefined || this.#second !== undefined) return undefined;
    if (!this.#isStartCertain) return { kind: 'start', offset: this.#isLone ? this.from : this.from + 1 };
    const rest = this.#first.fork();
    const length = await rest.skipCertain();
    if (this.#isAsciiOnly || rest.atEnd() || length <= HALF_BLOCK_BYTES) return undefined;
    // The last place before the middle of the first block at which a character begins.
    const near = await this.part.content.read(HALF_BLOCK_BYTES - 4, HALF_BLOCK_BYTES + 4);
    const aligned = [4, 3, 2, 1].find((at) => shownWidth(near, at) > 0);
    return aligned === undefined ? undefined : { kind: 'cut', offset: this.from + HALF_BLOCK_BYTES - 4 + aligned };
  }

  /** Takes the response to a doubt; undefined if the file does not exist any more. */
  async settle({ kind }: Doubt, part: Part | undefined): Promise<void> {
    if (part !== undefined) this.#parts.push(part);
    if (part === undefined) this.#following = 'unclear';
    else if (kind === 'cut') {
      this.#second = new TextCursor(part.content, this.#isAsciiOnly);
      this.#secondFrom = part.offset;
    } else if (await this.#isFollowedBy(part)) this.#isStartCertain = true;
    else if (this.#isLone || part.content.length > 0) this.#following = 'hidden';
    else this.#isLone = true;
  }

  async next(max: number): Promise<Buffer> {
    if (this.#following !== undefined) return NONE;
    if (this.#left.length === 0) this.#left = await this.#more(max);
    const bytes = this.#left.subarray(0, max);
    this.#left = this.#left.subarray(bytes.length);
    this.#at += bytes.length;
    if (bytes.length === 0) this.#following ??= await this.#afterFirst();
    return bytes;
  }

  async whatFollows(): Promise<WhatFollows> {
    return this.#following ?? 'hidden';
  }

  async release(): Promise<void> {
    for (const { content } of this.#parts) await content.release();
  }

  async #more(max: number): Promise<Buffer> {
    if (this.#second !== undefined && this.#at >= this.#secondFrom) {
      const agreed = await nextAgreed(this.#first, this.#second, max);
      if (agreed === undefined) this.#following = 'unclear';
      return agreed ?? NONE;
    }
    const bytes = await this.#first.peek(Math.min(max, this.#secondFrom - this.#at));
    this.#first.advance(bytes.length);
    return bytes;
  }

  async #afterFirst(): Promise<WhatFollows> {
    if (this.#first.atEnd()) return 'nothing';
    const rest = this.#first.fork(false);
    return (await rest.skipUncertain()) > 0 && rest.atEnd() ? 'incomplete-character' : 'hidden';
  }

  /**
   * Whether a text from the second byte on shows that no mark was stripped: the first byte is an ASCII character, and both
   * texts go on alike. Raw bytes settle all else (docs/dev/servers.md 1.4).
   */
  async #isFollowedBy({ content }: Part): Promise<boolean> {
    const text = await this.part.content.read(0, UNCUT_BYTES);
    if (this.size === 0) return content.length === 0;
    // What a file that shrank meanwhile shows proves nothing: the first text has to be the same again.
    const expected = this.#isLone ? text : certainOf(text.subarray(1), false, true);
    const found = certainOf(await content.read(0, expected.length), false, true);
    const isAlike = found.length > 0 && startsAlike(found, expected) && content.length >= expected.length;
    return (text[0] ?? 0x80) < 0x80 && isAlike;
  }
}
