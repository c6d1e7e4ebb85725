/**
 * Digests of large files while they arrive: rsync writes a file from its beginning to its end under a temporary name,
 * and then gives the same inode its own name. What was read is flushed on the way, so that little is left to do when
 * the file is whole. Nothing is read twice: a file that is written over later has no digest here that is true of it.
 */
import { createHash } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FileDigest } from '../system/files.ts';

/** Smaller files are read when they are whole. */
const LARGE_BYTES = 4 * 1024 * 1024;
const PIECE_BYTES = 1024 * 1024;
const FLUSH_BYTES = 64 * 1024 * 1024;
const LOOK_MS = 100;

export class GrowingDigests {
  readonly #directory: string;
  readonly #growing = new Map<number, Growing>();
  readonly #closing = new AbortController();
  readonly #looking: Promise<void>;
  #mostBytes = 0;

  /** `directory` is where the files are while they grow. */
  constructor(directory: string) {
    this.#directory = directory;
    this.#looking = this.#keepLooking();
    // `close` reports it.
    this.#looking.catch(() => {});
  }

  /** The length of the longest file so far. */
  get mostBytes(): number {
    return this.#mostBytes;
  }

  /** Whether it followed the file while that grew. */
  has(inode: number): boolean {
    return this.#growing.has(inode);
  }

  /** The digest of a file that is whole, and was only added to; undefined if it was not followed. */
  async take(inode: number): Promise<FileDigest | undefined> {
    const growing = this.#growing.get(inode);
    this.#growing.delete(inode);
    return growing?.finish();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    try {
      await this.#looking;
    } finally {
      const left = [...this.#growing.values()];
      this.#growing.clear();
      await Promise.allSettled(left.map((growing) => growing.finish()));
    }
  }

  async #keepLooking(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await sleep(LOOK_MS, undefined, { signal }).catch(() => {});
      const names = await fs.readdir(this.#directory).catch(() => []);
      for (const name of names) await this.#look(path.join(this.#directory, name));
    }
  }

  async #look(file: string): Promise<void> {
    const stat = await fs.lstat(file).catch(() => undefined);
    if (stat?.isFile() !== true) return;
    this.#mostBytes = Math.max(this.#mostBytes, stat.size);
    if (stat.size < LARGE_BYTES || this.#growing.has(stat.ino)) return;
    const handle = await fs.open(file, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW).catch(() => undefined);
    const opened = await handle?.stat().catch(() => undefined);
    // What cannot be followed while it grows is read when it is whole.
    if (handle === undefined || opened === undefined || this.#growing.has(opened.ino)) await handle?.close();
    else this.#growing.set(opened.ino, new Growing(handle));
  }
}

/** One file that grows. */
class Growing {
  readonly #handle: fs.FileHandle;
  readonly #whole = new AbortController();
  readonly #reading: Promise<FileDigest>;
  #flushing: Promise<void> | undefined;

  constructor(handle: fs.FileHandle) {
    this.#handle = handle;
    this.#reading = this.#read();
    this.#reading.catch(() => {});
  }

  /** Reads what is left, now that nothing will be added. */
  async finish(): Promise<FileDigest> {
    this.#whole.abort();
    try {
      const digest = await this.#reading;
      // A failed flush is reported once: it must not be lost.
      await this.#flushing;
      return digest;
    } finally {
      await this.#handle.close();
    }
  }

  async #read(): Promise<FileDigest> {
    const { signal } = this.#whole;
    const hash = createHash('sha256');
    const buffer = Buffer.allocUnsafe(PIECE_BYTES);
    for (let at = 0, flushedAt = 0; ; ) {
      const isWhole = signal.aborted;
      const { bytesRead } = await this.#handle.read(buffer, 0, buffer.length, at);
      hash.update(buffer.subarray(0, bytesRead));
      at += bytesRead;
      if (at - flushedAt >= FLUSH_BYTES) {
        flushedAt = at;
        await this.#flush();
      }
      if (bytesRead > 0) continue;
      if (isWhole) return { bytes: at, sha256: hash.digest('hex') };
      await sleep(LOOK_MS, undefined, { signal }).catch(() => {});
    }
  }

  /** Begins to flush, once the flush before is done. */
  async #flush(): Promise<void> {
    await this.#flushing;
    this.#flushing = this.#handle.datasync();
    this.#flushing.catch(() => {});
  }
}
