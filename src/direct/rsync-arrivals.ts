/**
 * Passes on the files of one run of rsync as they arrive, so a kill loses only files that were not passed on yet. rsync
 * renames a file when it is complete and its checksum matches, so a file with its final name is good. Large files are
 * hashed while they grow. After a wrong checksum, rsync moves a file to the partial directory beside it and sends it again
 * into the same inode, so the digest would be wrong. It is used only if that partial directory stayed unused.
 */

import { createHash } from 'node:crypto';
import { lstatSync, type Stats } from 'node:fs';
import fs from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DirectArrival, DirectFile, DirectRequest } from '../agent/ports/transfer.ts';
import { LinkedAbort } from '../linked-abort.ts';
import { inSlices } from '../slices.ts';
import { type FileDigest, PIECE_BYTES } from '../system/files.ts';
import { READ } from '../system/regular-files.ts';
import { isPartialUnused } from './directories.ts';
import { unacceptable } from './failures.ts';

/** Smaller files are hashed when they are complete. */
const LARGE_BYTES = 4 * 1024 * 1024;
export const FLUSH_BYTES = 64 * 1024 * 1024;
const TICK_MS = 100;
/** Each costs a flush. */
const TICKS_A_HAND_OVER = 5;

interface RsyncArrivalsOptions {
  readonly maxFileBytes: number | null;
  readonly onFiles: DirectRequest['onFiles'];
  readonly onTooLarge: DirectRequest['onTooLarge'];
  readonly signal: AbortSignal;
  readonly files: Map<string, DirectFile>;
  /** The directories of complete and of growing files. */
  readonly arrival: string;
  readonly growing: string;
  readonly host: string;
}

export class RsyncArrivals {
  readonly #options: RsyncArrivalsOptions;
  /** Large files by their inodes. */
  readonly #growing = new Map<number, Growing>();
  readonly #stop: LinkedAbort;
  readonly #ended = new AbortController();
  readonly #running: Promise<void>;
  #reported: string[] = [];

  constructor(options: RsyncArrivalsOptions) {
    this.#options = options;
    this.#stop = new LinkedAbort(options.signal);
    this.#running = this.#run();
    this.#running.catch((error: unknown) => this.#stop.abort(error));
  }

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** rsync prints a name just before it renames the file. */
  report(name: string): void {
    this.#reported.push(name);
  }

  async end(): Promise<void> {
    this.#ended.abort();
    try {
      await this.#running;
      if (!this.#options.signal.aborted) await this.#handOver([...this.#options.files.keys()]);
    } finally {
      this.#stop.release();
      await Promise.allSettled([...this.#growing.values()].map((growing) => growing.finish()));
    }
  }

  async #run(): Promise<void> {
    const { growing } = this.#options;
    const { signal } = this.#ended;
    for (let tick = 1; !signal.aborted; tick++) {
      await sleep(TICK_MS, undefined, { signal }).catch(() => {});
      const names = await fs.readdir(growing).catch(() => []);
      for (const name of names) await this.#follow(path.join(growing, name));
      if (tick % TICKS_A_HAND_OVER !== 0) continue;
      const reported = this.#reported;
      this.#reported = [];
      const missing = await this.#handOver(reported);
      this.#reported = missing.concat(this.#reported);
    }
  }

  async #follow(file: string): Promise<void> {
    const { host, maxFileBytes } = this.#options;
    const stat = await fs.lstat(file).catch(() => undefined);
    if (stat?.isFile() !== true) return;
    // rsync skips files that are announced as too large, but does not check the announced size.
    if (this.#isTooLarge(stat.size))
      throw unacceptable(`${host} sends more bytes of a file than the ${maxFileBytes} that are allowed`);
    if (stat.size < LARGE_BYTES || this.#growing.has(stat.ino)) return;
    const handle = await fs.open(file, READ).catch(() => undefined);
    const opened = await handle?.stat().catch(() => undefined);
    // A file that cannot be followed now is read when it is complete.
    if (handle === undefined || opened === undefined || this.#growing.has(opened.ino)) await handle?.close();
    else this.#growing.set(opened.ino, new Growing(handle));
  }

  #isTooLarge(bytes: number): boolean {
    const { maxFileBytes } = this.#options;
    return maxFileBytes !== null && bytes > maxFileBytes;
  }

  /** Passes on the files that exist; returns the names of the others. */
  async #handOver(names: readonly string[]): Promise<string[]> {
    const { files, arrival, onFiles, onTooLarge } = this.#options;
    const arrivals: DirectArrival[] = [];
    const missing: string[] = [];
    for await (const name of inSlices(names)) {
      const file = files.get(name);
      if (file === undefined) continue;
      const at = path.join(arrival, name);
      const stat = regularFile(at);
      if (stat === undefined) missing.push(name);
      else if (this.#isTooLarge(stat.size)) {
        files.delete(name);
        await fs.rm(at, { force: true });
        onTooLarge(file);
      } else {
        files.delete(name);
        arrivals.push({ file, path: at, digest: await this.#digestOf(at, stat) });
      }
    }
    if (arrivals.length > 0) await onFiles(arrivals);
    return missing;
  }

  /** Undefined if it was not hashed while it grew. */
  async #digestOf(at: string, { ino }: Stats): Promise<FileDigest | undefined> {
    const growing = this.#growing.get(ino);
    // Checked after the file has its final name: any use of the partial directory came before.
    if (growing === undefined || !(await isPartialUnused(at))) return undefined;
    this.#growing.delete(ino);
    return await growing.finish();
  }
}

function regularFile(file: string): Stats | undefined {
  try {
    const stat = lstatSync(file, { throwIfNoEntry: false });
    return stat?.isFile() === true ? stat : undefined;
  } catch {
    // A file where a directory should be.
    return undefined;
  }
}

/** A file that is read while it grows. */
export class Growing {
  readonly #handle: fs.FileHandle;
  readonly #complete = new AbortController();
  readonly #reading: Promise<FileDigest>;
  #flushing: Promise<void> | undefined;

  constructor(handle: fs.FileHandle) {
    this.#handle = handle;
    this.#reading = this.#read();
    this.#reading.catch(() => {});
  }

  async finish(): Promise<FileDigest> {
    this.#complete.abort();
    try {
      const digest = await this.#reading;
      // The system reports a failed flush to a descriptor once, so it is thrown here.
      await this.#flushing;
      return digest;
    } finally {
      await this.#handle.close();
    }
  }

  async #read(): Promise<FileDigest> {
    const { signal } = this.#complete;
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
      await sleep(TICK_MS, undefined, { signal }).catch(() => {});
    }
  }

  async #flush(): Promise<void> {
    await this.#flushing;
    this.#flushing = this.#handle.datasync();
    this.#flushing.catch(() => {});
  }
}
