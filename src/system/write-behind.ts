/** Writes a file piece by piece, and flushes what was written meanwhile, so that little is left to flush at its end. */
import type { FileHandle } from 'node:fs/promises';
import { asJobtailError } from '../errors.ts';
import { writeAll } from './write-all.ts';

const FLUSH_BYTES = 128 * 1024 * 1024;

export class FileWriter {
  readonly #handle: FileHandle;
  readonly #file: string;
  #unflushedBytes = 0;
  #writing: Promise<void> = Promise.resolve();
  #flushing: Promise<void> = Promise.resolve();

  /** `file` is its name, for messages. */
  constructor(handle: FileHandle, file: string) {
    this.#handle = handle;
    this.#file = file;
  }

  /**
   * Begins to write at once, and resolves when the bytes are in the file; until then they stay as they are.
   * @throws JobtailError disk-full, permission, local-io: for these bytes, or for flushing earlier ones
   */
  async write(bytes: Buffer): Promise<void> {
    this.#writing = this.#try(() => writeAll(this.#handle, bytes, null));
    await this.#writing;
    this.#unflushedBytes += bytes.length;
    if (this.#unflushedBytes < FLUSH_BYTES) return;
    this.#unflushedBytes = 0;
    await this.#flushing;
    this.#flushing = this.#try(() => this.#handle.datasync());
  }

  /** Nothing is under way any more; flushed is only a part. @throws JobtailError disk-full, permission, local-io */
  async finish(): Promise<void> {
    await this.#writing;
    await this.#flushing;
  }

  /** Nothing is under way any more, whatever came of it. */
  async settled(): Promise<void> {
    await Promise.allSettled([this.#writing, this.#flushing]);
  }

  /** What fails is told to whoever awaits it next. */
  #try(work: () => Promise<void>): Promise<void> {
    const done = work().catch((error: unknown) => {
      if (error instanceof Error) Object.assign(error, { path: this.#file });
      throw asJobtailError(error);
    });
    done.catch(() => {});
    return done;
  }
}
