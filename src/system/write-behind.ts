/** Writes a file piece by piece, each while the next one is made, and perhaps flushes what was written meanwhile. */
import { asJobtailError } from '../errors.ts';
import { type OpenFile, writeAll } from './files.ts';

export interface FileWriterOptions {
  /** The path of the file, for messages; one without a name has none. */
  readonly path?: string;
  /** So many at a time are flushed on the way, so that little is left to flush at the end; none if left out. */
  readonly flushBytes?: number;
}

export class FileWriter {
  readonly #file: Pick<OpenFile, 'write' | 'datasync'>;
  readonly #options: FileWriterOptions;
  #unflushedBytes = 0;
  #writing: Promise<void> = Promise.resolve();
  #flushing: Promise<void> = Promise.resolve();

  constructor(file: Pick<OpenFile, 'write' | 'datasync'>, options: FileWriterOptions) {
    this.#file = file;
    this.#options = options;
  }

  /** Begins to write, once all before is written; the bytes stay as they are until `written` resolves. */
  begin(bytes: Buffer): void {
    this.#writing = this.#try(() => writeAll(this.#file, bytes, null));
    this.#unflushedBytes += bytes.length;
  }

  /**
   * All is in the file.
   * @throws JobtailError disk-full, permission, local-io: for the last bytes, or for flushing earlier ones
   */
  async written(): Promise<void> {
    await this.#writing;
    if (this.#unflushedBytes < (this.#options.flushBytes ?? Number.POSITIVE_INFINITY)) return;
    this.#unflushedBytes = 0;
    await this.#flushing;
    this.#flushing = this.#try(() => this.#file.datasync());
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
      const { path } = this.#options;
      if (error instanceof Error && path !== undefined) Object.assign(error, { path });
      throw asJobtailError(error);
    });
    done.catch(() => {});
    return done;
  }
}
