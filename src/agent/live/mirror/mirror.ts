/**
 * One live mirror on disk. It is never written through a symbolic link: the file is opened with O_NOFOLLOW, and each
 * directory of its path is checked first.
 */
import { createHash } from 'node:crypto';
import fs, { type BigIntStats, constants } from 'node:fs';
import path from 'node:path';
import { crc32 } from 'node:zlib';
import { asJobtailError } from '../../../errors.ts';
import type { JobId, LiveFileKey } from '../../../job.ts';
import { liveParts } from '../../../mirror-paths.ts';
import { directoriesBelow, flushPath, inTheWay, makeDirectories } from '../../../system/directories.ts';
import { EXACT, type FileCalls, fileCalls, type Opener, type OpenFile, writeAll } from '../../../system/files.ts';

/** Bytes before the committed offset that the fingerprint covers. */
export const FINGERPRINT_BYTES = 1024;

const CHECKSUM_STEP_BYTES = 1024 * 1024;

/** The checksum of the bytes before `position`. */
interface Checksum {
  readonly position: number;
  readonly value: number;
}

/** Status of a mirror on disk. */
export interface MirrorLook {
  readonly length: number;
  readonly inode: string;
  readonly modifiedNs: string;
}

/** The path of a live mirror: a contract with programs that tail it. */
export function mirrorPath(mirrorDirectory: string, jobId: JobId, key: LiveFileKey): string {
  return path.join(mirrorDirectory, ...liveParts(jobId, key));
}

/** Readable for the group. */
const FILE_MODE = 0o640;

/** System calls for a mirror and its directories. */
export type MirrorCalls = Pick<FileCalls, 'lstat' | 'open'>;

/** Called directly before each write. @throws JobtailError if the agent may not write */
export type RequireRight = () => void;

export class Mirror {
  readonly path: string;
  readonly #file: OpenFile;
  readonly #directories: readonly string[];
  readonly #requireRight: RequireRight;
  /** Device and inode. */
  #identity = '';

  private constructor(at: string, file: OpenFile, directories: readonly string[], requireRight: RequireRight) {
    this.path = at;
    this.#file = file;
    this.#directories = directories;
    this.#requireRight = requireRight;
  }

  /** Opens the mirror; creates it if it does not exist. */
  static async open(
    root: string,
    file: string,
    calls: MirrorCalls = fileCalls(true),
    requireRight: RequireRight = () => {},
  ): Promise<Mirror> {
    const directory = path.dirname(file);
    await makeDirectories(calls, root, directory);
    const opened = await openOrMake(file, calls.open);
    const mirror = new Mirror(file, opened, directoriesBelow(root, directory), requireRight);
    try {
      const stat = await mirror.#stat();
      if (!stat.isFile()) throw inTheWay(file, 'file');
      mirror.#identity = identityOf(stat);
      return mirror;
    } catch (error) {
      await opened.close();
      throw error;
    }
  }

  /**
   * Whether its path still leads to this file, without a symbolic link: no process moved, removed or replaced it, or
   * one of its directories. Only for a local file system.
   */
  isInPlace(): boolean {
    try {
      if (!this.#directories.every((directory) => fs.lstatSync(directory).isDirectory())) return false;
      return identityOf(fs.lstatSync(this.path, EXACT)) === this.#identity;
    } catch {
      // The next open reports the error.
      return false;
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
        this.#file.read(bytes, filled, bytes.length - filled, start + filled),
      );
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return bytes.subarray(0, filled);
  }

  /** Writes all of `bytes` at `position`; a failure leaves a prefix of them. */
  async write(position: number, bytes: Buffer): Promise<void> {
    const write: OpenFile['write'] = (...piece) => {
      this.#requireRight();
      return this.#file.write(...piece);
    };
    await this.#named(() => writeAll({ write }, bytes, position));
  }

  async cut(length: number): Promise<void> {
    this.#requireRight();
    await this.#named(() => this.#file.truncate(length));
  }

  /** Flushes written bytes to the disk. */
  async flush(): Promise<void> {
    await this.#named(() => this.#file.datasync());
  }

  /** The fingerprint of the bytes before `position`; null at the beginning. */
  async fingerprint(position: number): Promise<string | null> {
    if (position === 0) return null;
    const bytes = await this.read(Math.max(0, position - FINGERPRINT_BYTES), position);
    return createHash('sha256').update(bytes).digest('hex');
  }

  /** The CRC-32 of the bytes before `position`; `known` is that of the bytes before an earlier one. */
  async checksum(position: number, known: Checksum = { position: 0, value: 0 }): Promise<number> {
    let { value } = known;
    for (let at = known.position; at < position; at += CHECKSUM_STEP_BYTES)
      value = crc32(await this.read(at, Math.min(position, at + CHECKSUM_STEP_BYTES)), value);
    return value;
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  #stat(): Promise<BigIntStats> {
    return this.#named(() => this.#file.stat(EXACT));
  }

  /** Adds the path to an error: those of a handle have none. */
  async #named<T>(call: () => T | Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      if (error instanceof Error && 'syscall' in error) Object.assign(error, { path: this.path });
      throw asJobtailError(error);
    }
  }
}

async function openOrMake(file: string, open: Opener): Promise<OpenFile> {
  const flags = constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  try {
    return await open(file, flags);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ELOOP' || code === 'EISDIR' || code === 'ENXIO') throw inTheWay(file, 'file');
    if (code !== 'ENOENT') throw error;
  }
  const made = await open(file, flags | constants.O_CREAT, FILE_MODE);
  await flushPath(path.dirname(file));
  return made;
}

const identityOf = ({ dev, ino }: BigIntStats) => `${dev}:${ino}`;
