/**
 * One live mirror on disk. It is never written through a symbolic link: the file is opened with O_NOFOLLOW, and each
 * directory of its path is checked first. Each poll opens it anew: on a network file system only open() revalidates
 * the attributes of a file.
 */
import fs, { type BigIntStats, constants } from 'node:fs';
import path from 'node:path';
import { crc32 } from 'node:zlib';
import { asJobtailError } from '../../../errors.ts';
import type { JobId, LiveFileKey } from '../../../job.ts';
import type { KeptMismatch } from '../../../mismatch.ts';
import { liveParts } from '../../../safe-names.ts';
import type { LiveFileRow } from '../../../store/rows.ts';
import { flushPath, makeDirectories } from '../../../system/directories.ts';
import {
  EXACT,
  type FileCalls,
  fileCalls,
  type Opener,
  type RandomAccessFile,
  writeAll,
} from '../../../system/files.ts';
import { inTheWay } from '../../../system/regular-files.ts';
import { ALONE, type Ownership } from '../../ownership.ts';

const CHECKSUM_STEP_BYTES = 1024 * 1024;
/** Unflushed bytes that start a flush in the background. */
const AHEAD_BYTES = 8 * 1024 * 1024;
/** Bytes appended before they are flushed and committed within one long append. */
const COMMIT_BYTES = 32 * 1024 * 1024;

/** The checksum of the bytes before `position`. */
interface Checksum {
  readonly position: number;
  readonly value: number;
}

/** Status of a mirror on disk. */
export interface MirrorStat {
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
const FLAGS = constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** The mirrors of all live files. */
export class Mirrors {
  readonly #directory: string;
  readonly #onNetwork: boolean;
  readonly #calls: FileCalls;
  /** Checks which mirrors may be written. */
  readonly ownership: Ownership;

  /** `onNetwork`: whether the directory is on a network file system. */
  constructor(
    directory: string,
    onNetwork: boolean,
    ownership: Ownership = ALONE,
    calls: FileCalls = fileCalls(onNetwork),
  ) {
    this.#directory = directory;
    this.#onNetwork = onNetwork;
    this.ownership = ownership;
    this.#calls = calls;
  }

  /** Opens the mirror of a live file; creates it if it does not exist. */
  open(jobId: JobId, key: LiveFileKey): Promise<Mirror> {
    const file = mirrorPath(this.#directory, jobId, key);
    return Mirror.open(this.#directory, file, this.#calls, () => this.ownership.requireLease(jobId));
  }

  /** Whether the mirror has the status of its row, without opening it. */
  async isAsLeft(row: LiveFileRow): Promise<boolean> {
    const file = mirrorPath(this.#directory, row.jobId, row);
    try {
      // On a network file system stat may take long, so it must not block the event loop.
      const { ino, mtimeNs, size } = this.#onNetwork ? await fs.promises.lstat(file, EXACT) : fs.lstatSync(file, EXACT);
      return String(mtimeNs) === row.modifiedNs && String(ino) === row.inode && Number(size) === row.position;
    } catch {
      // The next open reports the error.
      return false;
    }
  }
}

export interface LiveFileEvents {
  /** Called once for each mismatch that was acted upon. */
  readonly onMismatch?: ((row: LiveFileRow, found: KeptMismatch) => void) | undefined;
  /** Called once for a mirror whose inode or time is always another one, although its bytes are right. */
  readonly onUnsteady?: ((row: LiveFileRow) => void) | undefined;
}

/** What all live files share. */
export interface LiveFileOptions extends LiveFileEvents {
  readonly mirrors: Mirrors;
  /** Number of old generations that are kept; 0 keeps none. */
  readonly keepGenerations: number;
  /** Commits the row durably, at once. */
  readonly commitNow: (row: LiveFileRow) => void;
  /** Called with its name at each point where a kill matters; tests stop there. */
  readonly checkpoint: (step: string) => void | Promise<void>;
  /** Bytes before the committed offset that each poll requests again. */
  readonly overlapBytes: number;
  /** Wall clock, in milliseconds. */
  readonly now: () => number;
}

export class Mirror {
  readonly path: string;
  readonly #file: RandomAccessFile;
  /** Called directly before each write. @throws JobtailError if the agent may not write */
  readonly #requireRight: () => void;
  #length = 0;
  #appended = 0;
  #unflushed = 0;
  /** Unflushed bytes that the background flush covers. */
  #ahead = 0;
  #flushingAhead: Promise<void> = Promise.resolve();

  private constructor(at: string, file: RandomAccessFile, requireRight: () => void) {
    this.path = at;
    this.#file = file;
    this.#requireRight = requireRight;
  }

  /** Opens the mirror; creates it if it does not exist. */
  static async open(
    root: string,
    file: string,
    calls: FileCalls = fileCalls(true),
    requireRight: () => void = () => {},
  ): Promise<Mirror> {
    await makeDirectories(calls, root, path.dirname(file));
    const opened =
      (await openExisting(file, calls.open)) ?? (await calls.open(file, FLAGS | constants.O_CREAT, FILE_MODE));
    const mirror = new Mirror(file, opened, requireRight);
    try {
      const stat = await mirror.#stat();
      if (!stat.isFile()) throw inTheWay(file, 'file');
      mirror.#length = Number(stat.size);
      // Also one that an earlier call created: the flush of its name may have failed then.
      if (mirror.#length === 0) await flushPath(path.dirname(file));
      return mirror;
    } catch (error) {
      await opened.close();
      throw error;
    }
  }

  /** Length in bytes, as this process left it. */
  get length(): number {
    return this.#length;
  }

  /** Bytes appended since it was opened, without those that were cut. */
  get appended(): number {
    return this.#appended;
  }

  /** Whether enough bytes are unflushed that the caller should flush and commit. */
  get wantsCommit(): boolean {
    return this.#unflushed >= COMMIT_BYTES;
  }

  async stat(): Promise<MirrorStat> {
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

  /** Appends all of `bytes`; bytes that were written before a failure stay and count. */
  async append(bytes: Buffer): Promise<void> {
    const write: RandomAccessFile['write'] = (...piece) => {
      this.#requireRight();
      return this.#file.write(...piece);
    };
    try {
      await this.#named(() => writeAll({ write }, bytes, this.#length));
    } catch (error) {
      const stat = await this.stat().catch(() => undefined);
      this.#count(Math.max(0, (stat?.length ?? 0) - this.#length));
      throw error;
    }
    this.#count(bytes.length);
  }

  async cut(length: number): Promise<void> {
    this.#requireRight();
    await this.#named(() => this.#file.truncate(length));
    const removed = this.#length - length;
    this.#unflushed = Math.max(0, this.#unflushed - removed);
    this.#appended = Math.max(0, this.#appended - removed);
    this.#length = length;
  }

  /** Starts a flush in the background if enough is unflushed; `flush` reports its failure. */
  flushAhead(): void {
    if (this.#unflushed - this.#ahead < AHEAD_BYTES) return;
    this.#ahead = this.#unflushed;
    this.#flushingAhead = this.#flushingAhead.then(() => this.#flushAll());
    this.#flushingAhead.catch(() => {});
  }

  /** Flushes written bytes to the disk. */
  async flush(): Promise<void> {
    const ahead = this.#flushingAhead;
    this.#flushingAhead = Promise.resolve();
    this.#ahead = 0;
    await ahead;
    await this.#flushAll();
    this.#unflushed = 0;
  }

  /** The CRC-32 of the bytes before `position`; `known` is that of the bytes before an earlier one. */
  async checksum(position: number, known: Checksum = { position: 0, value: 0 }): Promise<number> {
    let { value } = known;
    for (let at = known.position; at < position; at += CHECKSUM_STEP_BYTES)
      value = crc32(await this.read(at, Math.min(position, at + CHECKSUM_STEP_BYTES)), value);
    return value;
  }

  async close(): Promise<void> {
    await this.#flushingAhead.catch(() => {});
    await this.#file.close();
  }

  #count(appended: number): void {
    this.#length += appended;
    this.#appended += appended;
    this.#unflushed += appended;
  }

  #flushAll(): Promise<void> {
    return this.#named(() => this.#file.datasync());
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

async function openExisting(file: string, open: Opener): Promise<RandomAccessFile | undefined> {
  try {
    return await open(file, FLAGS);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ELOOP' || code === 'EISDIR' || code === 'ENXIO') throw inTheWay(file, 'file');
    if (code !== 'ENOENT') throw error;
    return undefined;
  }
}
