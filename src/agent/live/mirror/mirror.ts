/**
 * One live mirror on disk. It is written only at a position that is known, and never through a link: the file is opened
 * with O_NOFOLLOW, and every directory on the way to it is looked at first.
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

/** Bytes before the position that the fingerprint is made of. */
export const FINGERPRINT_BYTES = 1024;

const CHECKSUM_STEP_BYTES = 1024 * 1024;

/** That of the bytes before `position`. */
interface Checksum {
  readonly position: number;
  readonly value: number;
}

/** How a mirror stands on disk. */
export interface MirrorLook {
  readonly length: number;
  readonly inode: string;
  readonly modifiedNs: string;
}

/** The path of a live mirror; a contract with those who tail it. */
export function mirrorPath(mirrorDirectory: string, jobId: JobId, key: LiveFileKey): string {
  return path.join(mirrorDirectory, ...liveParts(jobId, key));
}

/** Readable for the group, which may tail it. */
const FILE_MODE = 0o640;

/** How a mirror, and the directories above it, are reached. */
export type MirrorCalls = Pick<FileCalls, 'lstat' | 'open'>;

/** Asked right before each write. @throws JobtailError */
export type RequireRight = () => void;

export class Mirror {
  readonly path: string;
  readonly #file: OpenFile;
  readonly #directories: readonly string[];
  readonly #requireRight: RequireRight;
  /** What the system knows the file by while it is open. */
  #identity = '';

  private constructor(at: string, file: OpenFile, directories: readonly string[], requireRight: RequireRight) {
    this.path = at;
    this.#file = file;
    this.#directories = directories;
    this.#requireRight = requireRight;
  }

  /** Opens the mirror, and makes it if it is not there. */
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
   * Whether its path still leads to it, and not through a link: nobody moved, removed or replaced it, or a directory on
   * the way. Only for a local file system.
   */
  isInPlace(): boolean {
    try {
      if (!this.#directories.every((directory) => fs.lstatSync(directory).isDirectory())) return false;
      return identityOf(fs.lstatSync(this.path, EXACT)) === this.#identity;
    } catch {
      // Whoever opens it anew says what is wrong.
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

  /** Writes all of `bytes` at `position`; what a failure leaves behind is the right beginning of them. */
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

  /** Waits until what was written is on the disk. */
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

  /** Errors of a handle do not say which file it was. */
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
