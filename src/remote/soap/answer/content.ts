/**
 * Texts that are held until the answer says which file they belong to. The beginning of a long one goes to a temporary
 * file; the end of each, and all of a short one, stays in memory.
 */
import { randomUUID } from 'node:crypto';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Content, ContentWriter, Reserve } from '../../../agent/ports.ts';
import { REPLACEMENT } from '../../../bytes.ts';
import { asJobtailError, JobtailError } from '../../../errors.ts';
import { GrowingBuffer } from '../../../growing-buffer.ts';
import { FileWriter } from '../../../system/write-behind.ts';
import type { Lifted } from './lifted.ts';

/** Where a temporary file is made, if one is needed. */
export interface SpillPlace {
  readonly directory: string;
  /** What is left free there; nothing if left out. */
  readonly reserve?: Reserve | undefined;
}

export interface HoldOptions extends SpillPlace {
  /** A text is held in memory up to this size. */
  readonly memoryBytes: number;
  /** So much of a text is enough if some of it could not be decoded; all of it if left out. */
  readonly enoughBytes?: number | undefined;
}

/** When many texts of one answer fill this many times `memoryBytes`, the next ones go to the file earlier. */
const TEXTS_IN_MEMORY = 16;
const MIN_SPILL_BYTES = 64 * 1024;
/** What stays in memory of all texts of one answer, in the same measure: texts that are short are never spilled. */
const MOST_IN_MEMORY = 4 * TEXTS_IN_MEMORY;

/** The texts of one answer. They share one temporary file, so that an answer never needs more than one. */
export class HeldTexts implements Lifted {
  readonly #options: HoldOptions;
  readonly #texts: HeldText[] = [];
  readonly #file: SpillFile;
  #memoryBytes = 0;
  #tail = new GrowingBuffer();
  /** The other one is gathered in while this one is written. */
  #spare = new GrowingBuffer();
  #spilled = { start: 0, length: 0 };
  #inside = false;
  /** The service could not decode some of the text, as far as it came. */
  #hasReplaced = false;

  constructor(options: HoldOptions) {
    this.#options = options;
    this.#file = new SpillFile(options);
  }

  begin(): void {
    this.#inside = true;
    this.#tail.clear();
    this.#spilled = { start: 0, length: 0 };
    this.#hasReplaced = false;
  }

  bytes(bytes: Buffer): void {
    this.#tail.append(bytes);
    if (this.#options.enoughBytes !== undefined) this.#hasReplaced ||= bytes.includes(REPLACEMENT);
  }

  end(): void {
    this.#inside = false;
    const tail = this.#tail.take();
    this.#memoryBytes += tail.length;
    this.#texts.push(new HeldText(this.#file, this.#spilled, tail));
    if (this.#memoryBytes <= MOST_IN_MEMORY * this.#options.memoryBytes) return;
    throw new JobtailError('answer-too-large', `the answer has ${this.#texts.length} texts and more`, {
      hint: 'fewer files are asked for at once; if it stays so, look at what the service sends',
    });
  }

  /**
   * Moves what is too long for the memory to the file. While it is written there, the next bytes of the text are
   * gathered; behind the end of a text, everything is written.
   * @throws JobtailError disk-full, permission, local-io
   */
  async flush(): Promise<void> {
    const { memoryBytes } = this.#options;
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
    const { enoughBytes = Number.POSITIVE_INFINITY } = this.#options;
    return this.#inside && this.#hasReplaced && this.#spilled.length + this.#tail.length >= enoughBytes;
  }

  /** What there is of the text that comes in; those before are given back. Whoever takes it releases it. */
  async endEarly(): Promise<Content> {
    await this.discard();
    this.end();
    await this.flush();
    const text = this.#texts.at(-1);
    if (text === undefined) throw new JobtailError('internal', 'no text was begun');
    return text;
  }

  /** The texts, in the order of the answer. Whoever takes one releases it. */
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

/** A temporary file without a name: a crash leaves nothing of it. Closed when the last of its users has closed it. */
class SpillFile {
  readonly #place: SpillPlace;
  #handle: FileHandle | undefined;
  #writer: FileWriter | undefined;
  #length = 0;
  #users = 1;

  constructor(place: SpillPlace) {
    this.#place = place;
  }

  retain(): void {
    this.#users += 1;
  }

  async close(): Promise<void> {
    this.#users -= 1;
    if (this.#users > 0) return;
    await this.#writer?.settled();
    const handle = this.#handle;
    this.#handle = undefined;
    await handle?.close();
  }

  /** Begins to write, and says where the bytes will stand; they stay as they are until the next call resolves. */
  async append(bytes: Buffer): Promise<number> {
    await this.written();
    const { directory, reserve } = this.#place;
    try {
      await reserve?.require(bytes.length);
      this.#handle ??= await openUnnamed(directory);
    } catch (error) {
      throw asJobtailError(error);
    }
    if (this.#users === 0) {
      // It was closed while the last bytes were still on their way.
      await this.#handle.close();
      this.#handle = undefined;
      throw new JobtailError('aborted', 'nobody wants these bytes any more');
    }
    const start = this.#length;
    this.#length += bytes.length;
    this.#writer ??= new FileWriter(this.#handle, {});
    this.#writer.begin(bytes);
    return start;
  }

  /** Resolves when everything is written. @throws JobtailError disk-full, permission, local-io */
  async written(): Promise<void> {
    await this.#writer?.written();
  }

  /** Fills `bytes` with the `length` bytes from `start` on. @throws JobtailError local-io, permission */
  async read(bytes: Buffer, start: number, length: number): Promise<void> {
    await this.written();
    try {
      for (let done = 0; done < length; ) {
        const result = await this.#handle?.read(bytes, done, length - done, start + done);
        if (result === undefined || result.bytesRead === 0) {
          throw new JobtailError('local-io', 'a temporary file is shorter than what was written to it', {
            hint: 'look at the disk of the state directory',
          });
        }
        done += result.bytesRead;
      }
    } catch (error) {
      throw asJobtailError(error);
    }
  }
}

async function openUnnamed(directory: string): Promise<FileHandle> {
  const path = join(directory, `.answer-${randomUUID()}`);
  const handle = await open(path, 'wx+', 0o600);
  try {
    await unlink(path);
  } catch (error) {
    await handle.close();
    throw error;
  }
  return handle;
}

/** Holds bytes that are not trusted yet the same way: in memory, or in an unlinked temporary file. */
export function contentWriter({
  directory,
  reserve,
  memoryBytes = 1024 * 1024,
}: Partial<HoldOptions> & SpillPlace): ContentWriter {
  const held = new HeldTexts({ directory, reserve, memoryBytes });
  held.begin();
  return {
    async write(bytes) {
      held.bytes(bytes);
      await held.flush();
    },
    async finish() {
      held.end();
      await held.flush();
      await held.close();
      const [content] = held.texts;
      if (content === undefined) throw new JobtailError('internal', 'nothing was held');
      return content;
    },
    async discard() {
      await held.discard();
      await held.close();
    },
  };
}
