/**
 * The calls on files. On a local file system those that the system answers at once are made at once: handing one to a
 * thread and back costs ten times the call itself. On a network file system the answer may never come, so there a thread
 * waits for it, and nothing else does.
 */
import fs, { type BigIntStats, type Stats } from 'node:fs';
import { promisify } from 'node:util';

type Soon<Value> = Value | Promise<Value>;

export interface FileCalls {
  /** What stands there itself; undefined if nothing does. */
  lstat(file: string): Soon<Stats | undefined>;
  /** What stands there, through links; undefined if nothing does. */
  stat(file: string): Soon<Stats | undefined>;
  readlink(link: string): Soon<string>;
  chmod(file: string, mode: number): Soon<void>;
  rename(from: string, to: string): Soon<void>;
  readonly open: Opener;
}

/** `mode` is that of a file that is made. */
export type Opener = (file: string, flags: number, mode?: number) => Soon<OpenFile>;

/** What is needed of an open file; a `FileHandle` is one. It may read and write less than it is asked to. */
export interface OpenFile {
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
  /** Waits until what was written is on the disk. */
  datasync(): Promise<void>;
  close(): Soon<void>;
}

/** Lengths, inodes and times without rounding. */
export const EXACT = { bigint: true } as const;

/**
 * More than that is read by a thread on a local file system too, for it may have to wait for the disk more than once, and
 * is written in several calls: the kernel takes memory for a larger one in larger blocks, and where a virtual machine
 * gives its free memory back to the host, these have to be asked for again, which takes longer than the writing.
 */
export const AT_ONCE_BYTES = 64 * 1024;

export function fileCalls(onNetwork: boolean): FileCalls {
  return onNetwork ? ofThreads : atOnce;
}

/**
 * Writes all of `bytes` at `position`, or where the file stands if that is null. What a failure leaves behind is the right
 * beginning of them.
 */
export async function writeAll(file: Pick<OpenFile, 'write'>, bytes: Buffer, position: number | null): Promise<void> {
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
  open: (file, flags, mode) => localFile(fs.openSync(file, flags, mode)),
};

const ofThreads: FileCalls = {
  lstat: (file) => fs.promises.lstat(file).catch(undefinedIfMissing),
  stat: (file) => fs.promises.stat(file).catch(undefinedIfMissing),
  readlink: (link) => fs.promises.readlink(link),
  chmod: (file, mode) => fs.promises.chmod(file, mode),
  rename: (from, to) => fs.promises.rename(from, to),
  open: (file, flags, mode) => fs.promises.open(file, flags, mode),
};

/** An open file by its descriptor. */
const localFile = (fd: number): OpenFile => ({
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
  close: () => fs.closeSync(fd),
});

const byThread = {
  read: promisify(fs.read),
  truncate: promisify(fs.ftruncate),
  datasync: promisify(fs.fdatasync),
};

/** For a call that fails where nothing stands there. */
function undefinedIfMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}
