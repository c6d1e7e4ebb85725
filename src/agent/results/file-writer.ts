/**
 * Writes a file in large pieces: while one is written, the next one is gathered, and what was written is flushed
 * meanwhile, so that little is left to flush at its end.
 */
import type { FileHandle } from 'node:fs/promises';
import { asJobtailError } from '../../errors.ts';
import { GrowingBuffer } from '../../growing-buffer.ts';

const WRITE_BYTES = 1024 * 1024;
const FLUSH_BYTES = 128 * 1024 * 1024;

export class FileWriter {
  readonly #handle: FileHandle;
  readonly #file: string;
  #gathered = new GrowingBuffer();
  /** What is written while the other one is gathered. */
  #written = new GrowingBuffer();
  #unflushedBytes = 0;
  #writing: Promise<void> = Promise.resolve();
  #flushing: Promise<void> = Promise.resolve();

  /** `file` is its name, for messages. */
  constructor(handle: FileHandle, file: string) {
    this.#handle = handle;
    this.#file = file;
  }

  /** Copies the bytes. Settles once there is room for more; rejects if what was taken before cannot be written. */
  add(bytes: Buffer): void | Promise<void> {
    this.#gathered.append(bytes);
    if (this.#gathered.length >= WRITE_BYTES) return this.#write();
  }

  /** Everything is in the file; flushed is only a part of it. @throws JobtailError disk-full, permission, local-io */
  async finish(): Promise<void> {
    await this.#write();
    await this.#writing;
    await this.#flushing;
  }

  /** Nothing is under way any more, whatever came of it. */
  async settled(): Promise<void> {
    await Promise.allSettled([this.#writing, this.#flushing]);
  }

  async #write(): Promise<void> {
    await this.#writing;
    [this.#gathered, this.#written] = [this.#written, this.#gathered];
    this.#gathered.clear();
    this.#unflushedBytes += this.#written.length;
    const bytes = this.#written.view();
    this.#writing = this.#try(() => writeAll(this.#handle, bytes));
    if (this.#unflushedBytes < FLUSH_BYTES) return;
    this.#unflushedBytes = 0;
    await this.#flushing;
    this.#flushing = this.#try(() => this.#handle.datasync());
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

async function writeAll(handle: FileHandle, bytes: Buffer): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    written += (await handle.write(bytes, written, bytes.length - written)).bytesWritten;
  }
}
