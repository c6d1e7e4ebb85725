/**
 * Texts that are buffered until the response names their files. The beginning of a long one goes to a temporary
 * file; the end of each, and all of a short one, stays in memory.
 */
import type { Content, ContentWriter } from '../../agent/ports.ts';
import { JobtailError } from '../../errors.ts';
import { GrowingBuffer } from '../../growing-buffer.ts';
import type { Lifted } from './lifted.ts';
import { SpillFile, type SpillPlace } from './spill-file.ts';

/** When many texts of one answer fill this many times `memoryBytes`, the next ones go to the file earlier. */
const TEXTS_IN_MEMORY = 16;
const MIN_SPILL_BYTES = 64 * 1024;
/** What stays in memory of all texts of one answer, in the same measure: texts that are short are never spilled. */
const MOST_IN_MEMORY = 4 * TEXTS_IN_MEMORY;

/** The texts of one answer. They share one temporary file, so that an answer never needs more than one. */
export class HeldTexts implements Lifted {
  readonly #place: SpillPlace;
  readonly #enoughBytes: number;
  readonly #texts: HeldText[] = [];
  readonly #file: SpillFile;
  #memoryBytes = 0;
  #tail = new GrowingBuffer();
  /** The other one is gathered in while this one is written. */
  #spare = new GrowingBuffer();
  #spilled = { start: 0, length: 0 };
  #inside = false;

  /** So many bytes of a text are enough; all of it if left out. */
  constructor(place: SpillPlace, enoughBytes = Number.POSITIVE_INFINITY) {
    this.#place = place;
    this.#enoughBytes = enoughBytes;
    this.#file = new SpillFile(place);
  }

  begin(): void {
    this.#inside = true;
    this.#tail.clear();
    this.#spilled = { start: 0, length: 0 };
  }

  bytes(bytes: Buffer): void {
    this.#tail.append(bytes);
  }

  end(): void {
    this.#inside = false;
    const tail = this.#tail.take();
    this.#memoryBytes += tail.length;
    this.#texts.push(new HeldText(this.#file, this.#spilled, tail));
    if (this.#memoryBytes <= MOST_IN_MEMORY * this.#place.memoryBytes) return;
    throw new JobtailError('answer-too-large', `the answer has ${this.#texts.length} texts and more`, {
      hint: 'fewer files are requested at once; if the error persists, check what the service sends',
    });
  }

  /**
   * Moves what is too long for the memory to the file. While it is written there, the next bytes of the text are
   * gathered; behind the end of a text, everything is written.
   * @throws JobtailError disk-full, permission, local-io
   */
  async flush(): Promise<void> {
    const { memoryBytes } = this.#place;
    if (!this.#inside) await this.#file.written();
    const isCrowded = this.#memoryBytes + this.#tail.length > TEXTS_IN_MEMORY * memoryBytes;
    if (this.#tail.length <= (isCrowded ? Math.min(MIN_SPILL_BYTES, memoryBytes) : memoryBytes)) return;
    const full = this.#tail;
    const start = await this.#file.append(full.view());
    if (this.#spilled.length === 0) this.#spilled.start = start;
    this.#spilled.length += full.length;
    this.#tail = this.#spare;
    this.#tail.clear();
    this.#spare = full;
  }

  /** There is enough of the text that comes in. */
  get hasEnough(): boolean {
    return this.#inside && this.#spilled.length + this.#tail.length >= this.#enoughBytes;
  }

  /** The text that arrives now; earlier ones are released. The caller releases it. */
  async endEarly(): Promise<Content> {
    await this.discard();
    this.end();
    await this.flush();
    const text = this.#texts.at(-1);
    if (text === undefined) throw new JobtailError('internal', 'no text was begun');
    return text;
  }

  /** The texts, in the order of the response. The caller releases each. */
  get texts(): readonly Content[] {
    return this.#texts;
  }

  /** No more texts come. */
  async close(): Promise<void> {
    await this.#file.close();
  }

  /** Gives all texts back: the answer was no good. */
  async discard(): Promise<void> {
    await Promise.all(this.#texts.map((text) => text.release()));
  }
}

class HeldText implements Content {
  readonly length: number;
  readonly #file: SpillFile;
  readonly #spilled: { readonly start: number; readonly length: number };
  #tail: Buffer;
  #released = false;

  constructor(file: SpillFile, spilled: { readonly start: number; readonly length: number }, tail: Buffer) {
    this.#file = file;
    this.#spilled = spilled;
    this.#tail = tail;
    this.length = spilled.length + tail.length;
    if (spilled.length > 0) file.retain();
  }

  async read(start: number, end: number, space?: Buffer): Promise<Buffer> {
    if (this.#released) throw new JobtailError('internal', 'a text was read after it had been released');
    const to = Math.min(end, this.length);
    const { start: fileStart, length: inFile } = this.#spilled;
    const fromTail = this.#tail.subarray(Math.max(0, start - inFile), Math.max(0, to - inFile));
    if (start >= inFile || start >= to) return fromTail;
    const length = to - start;
    const bytes = space !== undefined && space.length >= length ? space : Buffer.allocUnsafe(length);
    await this.#file.read(bytes, fileStart + start, length - fromTail.length);
    fromTail.copy(bytes, length - fromTail.length);
    return bytes.subarray(0, length);
  }

  async release(): Promise<void> {
    if (this.#released) return;
    this.#released = true;
    this.#tail = Buffer.alloc(0);
    if (this.#spilled.length > 0) await this.#file.close();
  }
}

/** Holds bytes as the texts of an answer are held: in memory while they are few, else in a temporary file. */
export function contentWriter(place: SpillPlace): ContentWriter {
  const held = new HeldTexts(place);
  held.begin();
  return {
    async write(bytes) {
      held.bytes(bytes);
      await held.flush();
    },
    async finish() {
      const content = await held.endEarly();
      await held.close();
      return content;
    },
    async discard() {
      await held.discard();
      await held.close();
    },
  };
}
