/**
 * Files: the calls on them, new ones that are written piece by piece, and the room that is left for them.
 *
 * On a local file system those that the system answers at once are made at once: handing one to a thread and back costs
 * ten times the call itself. On a network file system the answer may never come, so there a thread waits for it, and
 * nothing else does.
 */
import { createHash } from 'node:crypto';
import fs, { type BigIntStats, constants, type Stats, type StatsFs } from 'node:fs';
import { promisify } from 'node:util';
import { asJobtailError, JobtailError } from '../errors.ts';

type Soon<Value> = Value | Promise<Value>;

export interface FileCalls {
  /** What stands there itself; undefined if nothing does. */
  lstat(file: string): Soon<Stats | undefined>;
  /** What stands there, through links; undefined if nothing does. */
  stat(file: string): Soon<Stats | undefined>;
  readlink(link: string): Soon<string>;
  chmod(file: string, mode: number): Soon<void>;
  rename(from: string, to: string): Soon<void>;
  /** Removes a file or a link, if there is one. */
  remove(file: string): Soon<void>;
  statfs(directory: string): Soon<Pick<StatsFs, 'bavail' | 'bsize'>>;
  readonly open: Opener;
}

/** `mode` is that of a file that is made. */
export type Opener = (file: string, flags: number, mode?: number) => Soon<RandomAccessFile>;

/** What is needed of an open file; a `FileHandle` is one. It may read and write less than it is asked to. */
export interface RandomAccessFile {
  stat(exact: typeof EXACT): Soon<BigIntStats>;
  read(bytes: Buffer, offset: number, length: number, position: number): Soon<{ readonly bytesRead: number }>;
  /** Writes at `position`, or where the file stands if that is null. */
  write(
    bytes: Buffer,
    offset: number,
    length: number,
    position: number | null,
  ): Soon<{ readonly bytesWritten: number }>;
  truncate(length: number): Soon<void>;
  datasync(): Promise<void>;
  /** Flushes names and times, too. */
  sync(): Promise<void>;
  close(): Soon<void>;
}

/** Of a large file, so many bytes are read at a time. */
export const PIECE_BYTES = 1024 * 1024;

/** Lengths, inodes and times without rounding. */
export const EXACT = { bigint: true } as const;

/** Changes when a file is written, replaced, made or removed, or its rights change. */
export function stampOf(stat: BigIntStats | undefined): string {
  if (stat === undefined) return '';
  const { dev, ino, size, mtimeNs, ctimeNs } = stat;
  return [dev, ino, size, mtimeNs, ctimeNs].join(' ');
}

/**
 * A larger read runs in a thread on a local file system too, because it may wait for the disk more than once. A larger
 * write is split: the kernel allocates larger blocks for it, and a virtual machine that returned its free memory to the
 * host must request these again, which takes longer than the write.
 */
export const AT_ONCE_BYTES = 64 * 1024;

export function fileCalls(onNetwork: boolean): FileCalls {
  return onNetwork ? ofThreads : atOnce;
}

/** Writes all of `bytes` at `position`, or at the current one if null; a failure leaves their right beginning. */
export async function writeAll(
  file: Pick<RandomAccessFile, 'write'>,
  bytes: Buffer,
  position: number | null,
): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    const at = position === null ? null : position + written;
    written += (await file.write(bytes, written, bytes.length - written, at)).bytesWritten;
  }
}

const atOnce: FileCalls = {
  lstat: (file) => fs.lstatSync(file, { throwIfNoEntry: false }),
  stat: (file) => fs.statSync(file, { throwIfNoEntry: false }),
  readlink: (link) => fs.readlinkSync(link),
  chmod: (file, mode) => fs.chmodSync(file, mode),
  rename: (from, to) => fs.renameSync(from, to),
  remove(file) {
    try {
      fs.unlinkSync(file);
    } catch (error) {
      undefinedIfMissing(error as NodeJS.ErrnoException);
    }
  },
  statfs: (directory) => fs.statfsSync(directory),
  open: (file, flags, mode) => localFile(fs.openSync(file, flags, mode)),
};

const ofThreads: FileCalls = {
  lstat: (file) => fs.promises.lstat(file).catch(undefinedIfMissing),
  stat: (file) => fs.promises.stat(file).catch(undefinedIfMissing),
  readlink: (link) => fs.promises.readlink(link),
  chmod: (file, mode) => fs.promises.chmod(file, mode),
  rename: (from, to) => fs.promises.rename(from, to),
  remove: (file) => fs.promises.rm(file, { force: true }),
  statfs: (directory) => fs.promises.statfs(directory),
  open: (file, flags, mode) => fs.promises.open(file, flags, mode),
};

const localFile = (fd: number): RandomAccessFile => ({
  stat: () => fs.fstatSync(fd, EXACT),
  read(bytes, offset, length, position) {
    if (length > AT_ONCE_BYTES) return byThread.read(fd, bytes, offset, length, position);
    return { bytesRead: fs.readSync(fd, bytes, offset, length, position) };
  },
  write: (bytes, offset, length, position) => ({
    bytesWritten: fs.writeSync(fd, bytes, offset, Math.min(length, AT_ONCE_BYTES), position),
  }),
  truncate: (length) => byThread.truncate(fd, length),
  datasync: () => byThread.datasync(fd),
  sync: () => byThread.sync(fd),
  close: () => fs.closeSync(fd),
});

/** Each is looked up when it is called: a test may put a disk of its own in the place of the machine's. */
const byThread = {
  read: (fd: number, bytes: Buffer, offset: number, length: number, position: number) =>
    promisify(fs.read)(fd, bytes, offset, length, position),
  truncate: (fd: number, length: number) => promisify(fs.ftruncate)(fd, length),
  datasync: (fd: number) => promisify(fs.fdatasync)(fd),
  sync: (fd: number) => promisify(fs.fsync)(fd),
};

/** For a call that fails where nothing stands there. */
export function undefinedIfMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}

export interface FileDigest {
  readonly bytes: number;
  readonly sha256: string;
}

/** So much at a time is flushed on the way. */
const FLUSH_BYTES = 128 * 1024 * 1024;

/** Resolves when the bytes are in the file; until then they stay as they are. */
export type WritePiece = (bytes: Buffer) => Promise<void>;

const NEW = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL;

/**
 * Makes a file, which must not exist, of the pieces that `fill` writes one after the other; one that is not whole is
 * removed again. A small one is written at once, by `calls`, and a larger one by threads. Not all of it is flushed at the
 * end.
 * @throws what `fill` throws; JobtailError disk-full, permission, local-io
 */
export async function writeNewFile(
  calls: FileCalls,
  file: string,
  mode: number,
  fill: (write: WritePiece) => Promise<unknown>,
): Promise<FileDigest> {
  const start: Buffer[] = [];
  const sha256 = createHash('sha256');
  let bytes = 0;
  let unflushedBytes = 0;
  let opened: RandomAccessFile | undefined;
  let writing = Promise.resolve();
  let flushing = Promise.resolve();
  const named = (error: unknown): never => {
    throw asJobtailError(error instanceof Error ? Object.assign(error, { path: file }) : error);
  };
  const put = async (target: RandomAccessFile, piece: Buffer) => {
    writing = writeAll(target, piece, null).catch(named);
    // Meanwhile, a thread writes.
    sha256.update(piece);
    await writing;
    unflushedBytes += piece.length;
    if (unflushedBytes < FLUSH_BYTES) return;
    unflushedBytes = 0;
    await flushing;
    flushing = target.datasync().catch(named);
    // The next await throws it.
    flushing.catch(() => {});
  };
  const begin = async (by: FileCalls) => {
    const target = await by.open(file, NEW, mode);
    opened = target;
    for (const piece of start.splice(0)) await put(target, piece);
    return target;
  };
  try {
    await fill(async (piece) => {
      bytes += piece.length;
      if (bytes <= AT_ONCE_BYTES) return void start.push(Buffer.from(piece));
      await put(opened ?? (await begin(ofThreads)), piece);
    });
    const target = opened ?? (await begin(calls));
    await flushing;
    await target.close();
    return { bytes, sha256: sha256.digest('hex') };
  } catch (error) {
    // What fails in between does not wait for the last piece: the file is closed only after it was written.
    await Promise.allSettled([writing, flushing]);
    await opened?.close();
    if (opened !== undefined) await fs.promises.rm(file, { force: true });
    throw error;
  }
}

/** A pass without room is repeated after this time: it requests much, and brings little. */
const ROOM_MS = 10 * 60_000;

/** Keeps some room on the disk of a directory free (`mirror.minFreeBytes`). */
export class DiskReserve {
  readonly #directory: string;
  readonly #minFreeBytes: number;
  readonly #calls: Pick<FileCalls, 'statfs'>;

  constructor(directory: string, minFreeBytes: number, calls: Pick<FileCalls, 'statfs'>) {
    this.#directory = directory;
    this.#minFreeBytes = minFreeBytes;
    this.#calls = calls;
  }

  /** Whether so many bytes more can be written. */
  async hasRoomFor(bytes: number): Promise<boolean> {
    if (this.#minFreeBytes === 0) return true;
    const { bavail, bsize } = await this.#calls.statfs(this.#directory);
    return bavail * bsize - bytes >= this.#minFreeBytes;
  }

  /** The reserve begins. */
  outOfRoom(): JobtailError {
    return new JobtailError('disk-full', `less than mirror.minFreeBytes would stay free in ${this.#directory}`, {
      hint: 'free some space, or lower mirror.minFreeBytes; the agent goes on by itself',
      retryAfterMs: ROOM_MS,
    });
  }

  async require(bytes: number): Promise<void> {
    if (!(await this.hasRoomFor(bytes))) throw this.outOfRoom();
  }
}
