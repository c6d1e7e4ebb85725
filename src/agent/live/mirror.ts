/**
 * One live mirror on disk. It is written only at a position that is known, and never through a link: the file is opened
 * with O_NOFOLLOW, and every directory on the way to it is looked at first.
 */
import { createHash } from 'node:crypto';
import { type BigIntStats, constants } from 'node:fs';
import fs from 'node:fs/promises';
import path from 'node:path';
import { asJobtailError } from '../../errors.ts';
import type { JobId, LiveFileKey } from '../../job.ts';
import { flushPath, inTheWay, makeDirectories } from '../directories.ts';

/** Bytes before the position that the fingerprint is made of. */
export const FINGERPRINT_BYTES = 1024;

/** How a mirror stands on disk. */
export interface MirrorLook {
  readonly length: number;
  readonly inode: string;
  readonly modifiedNs: string;
}

/** The path of a live mirror; a contract with those who tail it. */
export function mirrorPath(mirrorDirectory: string, jobId: JobId, key: LiveFileKey): string {
  return path.join(mirrorDirectory, jobId, 'live', key.taskId, `${key.file}.log`);
}

/** Opens files; tests put a wrapped one in its place. */
export type OpenFile = (file: string, flags: number, mode: number) => Promise<fs.FileHandle>;
const openFile: OpenFile = (file, flags, mode) => fs.open(file, flags, mode);

/** Readable for the group, which may tail it. */
const FILE_MODE = 0o640;

export class Mirror {
  readonly path: string;
  readonly #handle: fs.FileHandle;

  private constructor(file: string, handle: fs.FileHandle) {
    this.path = file;
    this.#handle = handle;
  }

  /** Opens the mirror, and makes it if it is not there. */
  static async open(root: string, file: string, open: OpenFile = openFile): Promise<Mirror> {
    const directory = path.dirname(file);
    await makeDirectories(root, directory);
    const flags = constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    const handle = await open(file, flags, FILE_MODE).catch(async (error: unknown) => {
      const code = (error as NodeJS.ErrnoException).code;
      if (code === 'ELOOP' || code === 'EISDIR' || code === 'ENXIO') throw inTheWay(file, 'file');
      if (code !== 'ENOENT') throw error;
      const made = await open(file, flags | constants.O_CREAT, FILE_MODE);
      await flushPath(directory);
      return made;
    });
    const mirror = new Mirror(file, handle);
    try {
      if (!(await mirror.#stat()).isFile()) throw inTheWay(file, 'file');
      return mirror;
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  async look(): Promise<MirrorLook> {
    const stat = await this.#stat();
    return { length: Number(stat.size), inode: String(stat.ino), modifiedNs: String(stat.mtimeNs) };
  }

  /** The bytes [start, end), fewer if the mirror ends before. */
  async read(start: number, end: number): Promise<Buffer> {
    const bytes = Buffer.allocUnsafe(end - start);
    let filled = 0;
    while (filled < bytes.length) {
      const { bytesRead } = await this.#named(() =>
        this.#handle.read(bytes, filled, bytes.length - filled, start + filled),
      );
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return bytes.subarray(0, filled);
  }

  /** Writes all of `bytes` at `position`; what a failure leaves behind is the right beginning of them. */
  async write(position: number, bytes: Buffer): Promise<void> {
    let written = 0;
    while (written < bytes.length) {
      const { bytesWritten } = await this.#named(() =>
        this.#handle.write(bytes, written, bytes.length - written, position + written),
      );
      written += bytesWritten;
    }
  }

  async cut(length: number): Promise<void> {
    await this.#named(() => this.#handle.truncate(length));
  }

  /** Waits until what was written is on the disk. */
  async flush(): Promise<void> {
    await this.#named(() => this.#handle.datasync());
  }

  /** The fingerprint of the bytes before `position`; null at the beginning. */
  async fingerprint(position: number): Promise<string | null> {
    if (position === 0) return null;
    const bytes = await this.read(Math.max(0, position - FINGERPRINT_BYTES), position);
    return createHash('sha256').update(bytes).digest('hex');
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }

  #stat(): Promise<BigIntStats> {
    return this.#named(() => this.#handle.stat({ bigint: true }));
  }

  /** Errors of a handle do not say which file it was. */
  async #named<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      if (error instanceof Error && 'syscall' in error) Object.assign(error, { path: this.path });
      throw asJobtailError(error);
    }
  }
}
