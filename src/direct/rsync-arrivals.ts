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
import type { DirectArrival, DirectFile, DirectRequest } from '../agent/ports.ts';
import { LinkedAbort } from '../linked-abort.ts';
import { inSlices } from '../slices.ts';
import type { FileDigest } from '../system/files.ts';
import { READ } from '../system/regular-files.ts';
import { isPartialUnused } from './directories.ts';
import { unacceptable } from './failures.ts';

const HAND_OVER_MS = 500;

interface RsyncArrivalsOptions
  extends Pick<DirectRequest, 'maxFileBytes' | 'onFiles' | 'onTooLarge' | 'onGrowing' | 'signal'> {
  readonly files: Map<string, DirectFile>;
  /** The directories of complete and of growing files. */
  readonly arrival: string;
  readonly growing: string;
  readonly host: string;
}

export class RsyncArrivals {
  readonly #options: RsyncArrivalsOptions;
  readonly #digests: GrowingDigests;
  readonly #stop: LinkedAbort;
  readonly #ended = new AbortController();
  readonly #handingOver: Promise<void>;
  #reported: string[] = [];
  /** The requested files by the last part of their names, without dots at its beginning. */
  readonly #byLastPart = new Map<string, DirectFile[]>();
  #growing: { readonly name: string; readonly file: DirectFile | undefined } | undefined;

  constructor(options: RsyncArrivalsOptions) {
    this.#options = options;
    this.#digests = new GrowingDigests(options.growing, (name, bytes) => this.#grows(name, bytes));
    this.#stop = new LinkedAbort(options.signal);
    this.#handingOver = this.#handOverWhileRunning();
    this.#handingOver.catch((error: unknown) => this.#stop.abort(error));
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
      await this.#handingOver;
      if (!this.#options.signal.aborted) await this.#handOver([...this.#options.files.keys()]);
    } finally {
      this.#stop.release();
      await this.#digests.close();
      this.#showGrowing(undefined);
    }
  }

  /** rsync receives one file at a time, as `NAME.123456`; NAME may lack dots at its beginning. */
  #grows(name: string, bytes: number): void {
    if (this.#growing?.name !== name) {
      this.#showGrowing(undefined);
      const base = withoutDots(name).replace(/\.[^.]+$/u, '');
      const those = this.#alike(base).filter(({ parts }) => this.#options.files.has(parts.join('/')));
      // Two of one name cannot be distinguished.
      this.#growing = { name, file: those.length === 1 ? those[0] : undefined };
    }
    this.#showGrowing(bytes);
  }

  #alike(base: string): readonly DirectFile[] {
    if (this.#byLastPart.size === 0) {
      for (const file of this.#options.files.values()) {
        const last = withoutDots(file.parts.at(-1));
        const alike = this.#byLastPart.get(last);
        if (alike === undefined) this.#byLastPart.set(last, [file]);
        else alike.push(file);
      }
    }
    return this.#byLastPart.get(base) ?? [];
  }

  #showGrowing(bytes: number | undefined): void {
    const { file } = this.#growing ?? {};
    if (file !== undefined) this.#options.onGrowing(file, bytes);
  }

  async #handOverWhileRunning(): Promise<void> {
    const { signal } = this.#ended;
    while (!signal.aborted) {
      await sleep(HAND_OVER_MS, undefined, { signal }).catch(() => {});
      // rsync skips files that are announced as too large, but does not check the announced size.
      if (this.#isTooLarge(this.#digests.largestBytes)) {
        throw unacceptable(
          `${this.#options.host} sends more bytes of a file than the ${this.#options.maxFileBytes} that are allowed`,
        );
      }
      const reported = this.#reported;
      this.#reported = [];
      const missing = await this.#handOver(reported);
      this.#reported = missing.concat(this.#reported);
    }
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
      if (file === this.#growing?.file) this.#showGrowing(undefined);
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

  async #digestOf(at: string, { ino }: Stats): Promise<FileDigest | undefined> {
    if (!this.#digests.has(ino)) return undefined;
    // Checked after the file has its final name: any use of the partial directory came before.
    return (await isPartialUnused(at)) ? this.#digests.take(ino) : undefined;
  }
}

const withoutDots = (name = '') => name.replace(/^\.+/, '');

function regularFile(file: string): Stats | undefined {
  try {
    const stat = lstatSync(file, { throwIfNoEntry: false });
    return stat?.isFile() === true ? stat : undefined;
  } catch {
    // A file where a directory should be.
    return undefined;
  }
}

/** Smaller files are hashed when they are complete. */
const LARGE_BYTES = 4 * 1024 * 1024;
const PIECE_BYTES = 1024 * 1024;
const FLUSH_BYTES = 64 * 1024 * 1024;
const TICK_MS = 100;

class GrowingDigests {
  readonly #directory: string;
  readonly #growing = new Map<number, Growing>();
  readonly #closing = new AbortController();
  readonly #polling: Promise<void>;
  readonly #onSize: (name: string, bytes: number) => void;
  #largestBytes = 0;

  constructor(directory: string, onSize: (name: string, bytes: number) => void = () => {}) {
    this.#directory = directory;
    this.#onSize = onSize;
    this.#polling = this.#keepPolling();
    // `close` reports a failure.
    this.#polling.catch(() => {});
  }

  get largestBytes(): number {
    return this.#largestBytes;
  }

  has(inode: number): boolean {
    return this.#growing.has(inode);
  }

  /** Finishes the digest of a file that is complete; undefined if it was not hashed while it grew. */
  async take(inode: number): Promise<FileDigest | undefined> {
    const growing = this.#growing.get(inode);
    this.#growing.delete(inode);
    return growing?.finish();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    try {
      await this.#polling;
    } finally {
      const left = [...this.#growing.values()];
      this.#growing.clear();
      await Promise.allSettled(left.map((growing) => growing.finish()));
    }
  }

  async #keepPolling(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await sleep(TICK_MS, undefined, { signal }).catch(() => {});
      const names = await fs.readdir(this.#directory).catch(() => []);
      for (const name of names) await this.#follow(path.join(this.#directory, name));
    }
  }

  async #follow(file: string): Promise<void> {
    const stat = await fs.lstat(file).catch(() => undefined);
    if (stat?.isFile() !== true) return;
    this.#largestBytes = Math.max(this.#largestBytes, stat.size);
    this.#onSize(path.basename(file), stat.size);
    if (stat.size < LARGE_BYTES || this.#growing.has(stat.ino)) return;
    const handle = await fs.open(file, READ).catch(() => undefined);
    const opened = await handle?.stat().catch(() => undefined);
    // A file that cannot be followed now is read when it is complete.
    if (handle === undefined || opened === undefined || this.#growing.has(opened.ino)) await handle?.close();
    else this.#growing.set(opened.ino, new Growing(handle));
  }
}

class Growing {
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
