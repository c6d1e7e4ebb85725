/** A temporary file without a name: a crash leaves nothing of it. */
import { randomUUID } from 'node:crypto';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Reserve } from '../../agent/ports.ts';
import { asJobtailError, JobtailError } from '../../errors.ts';
import { FileWriter } from '../../system/files.ts';

/** Where a temporary file is made, if one is needed. */
export interface SpillPlace {
  readonly directory: string;
  /** What is left free there. */
  readonly reserve: Reserve;
  /** What is held in memory before. */
  readonly memoryBytes: number;
}

/** Made with its first bytes, and closed when the last of its users has closed it. */
export class SpillFile {
  readonly #place: SpillPlace;
  #handle: FileHandle | undefined;
  #length = 0;
  #users = 1;
  #writer: FileWriter | undefined;

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

  /** Starts to write, and returns the position of the bytes; `bytes` stays unchanged until the next call resolves. */
  async append(bytes: Buffer): Promise<number> {
    await this.written();
    const { directory, reserve } = this.#place;
    try {
      await reserve.require(bytes.length);
      this.#handle ??= await openUnnamed(directory);
    } catch (error) {
      throw asJobtailError(error);
    }
    if (this.#users === 0) {
      // It was closed while the last bytes were still on their way.
      await this.#handle.close();
      this.#handle = undefined;
      throw new JobtailError('aborted', 'these bytes are not needed any more');
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
