/**
 * The calls on files that the system answers at once on a local file system, and are made at once there: handing one to
 * a thread and back costs ten times the call itself. On a network file system the answer may never come, so there a
 * thread waits for it, and nothing else does.
 */
import fs, { type Stats } from 'node:fs';
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
  open(file: string, flags: number): Soon<OpenFile>;
}

/** What is needed of an open file; a `FileHandle` is one. */
export interface OpenFile {
  stat(): Soon<Stats>;
  read(bytes: Buffer, offset: number, length: number, position: number): Soon<{ readonly bytesRead: number }>;
  close(): Soon<void>;
}

/** More than that is read by a thread on a local file system too. */
export const AT_ONCE_BYTES = 256 * 1024;

export function fileCalls(onNetwork: boolean): FileCalls {
  return onNetwork ? ofThreads : atOnce;
}

const atOnce: FileCalls = {
  lstat: (file) => fs.lstatSync(file, { throwIfNoEntry: false }),
  stat: (file) => fs.statSync(file, { throwIfNoEntry: false }),
  readlink: (link) => fs.readlinkSync(link),
  chmod: (file, mode) => fs.chmodSync(file, mode),
  rename: (from, to) => fs.renameSync(from, to),
  open: (file, flags) => new LocalFile(fs.openSync(file, flags)),
};

const ofThreads: FileCalls = {
  lstat: (file) => fs.promises.lstat(file).catch(undefinedIfMissing),
  stat: (file) => fs.promises.stat(file).catch(undefinedIfMissing),
  readlink: (link) => fs.promises.readlink(link),
  chmod: (file, mode) => fs.promises.chmod(file, mode),
  rename: (from, to) => fs.promises.rename(from, to),
  open: (file, flags) => fs.promises.open(file, flags),
};

class LocalFile implements OpenFile {
  readonly #fd: number;

  constructor(fd: number) {
    this.#fd = fd;
  }

  stat(): Stats {
    return fs.fstatSync(this.#fd);
  }

  read(bytes: Buffer, offset: number, length: number, position: number): Soon<{ readonly bytesRead: number }> {
    if (length > AT_ONCE_BYTES) return readByThread(this.#fd, bytes, offset, length, position);
    return { bytesRead: fs.readSync(this.#fd, bytes, offset, length, position) };
  }

  close(): void {
    fs.closeSync(this.#fd);
  }
}

const readByThread = promisify(fs.read);

function undefinedIfMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}
