/**
 * The files of one transfer as they arrive: counts and limits bytes, and passes complete files on in batches. Each
 * batch costs a flush, and a kill loses only files that were not passed on.
 */

import { randomBytes } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import type { DirectArrival, DirectFile, DirectRequest } from '../agent/ports.ts';
import { systemClock, Throttle } from '../system/clock.ts';
import { inTheWay } from '../system/directories.ts';
import { type FileDigest, fileCalls, writeNewFile } from '../system/files.ts';

const MANY_FILES = 500;
const MANY_BYTES = 32 * 1024 * 1024;
const LONG_MS = 2_000;

export class Arrivals {
  readonly #request: DirectRequest;
  readonly #way: string;
  readonly #throttle: Throttle;
  #hasCome = false;
  #written = 0;
  #waiting: DirectArrival[] = [];
  #waitingBytes = 0;
  #handedOverAt = performance.now();

  /** `way`: the method to report as working once a file has arrived. */
  constructor(request: DirectRequest, way: string) {
    this.#request = request;
    this.#way = way;
    this.#throttle = new Throttle(request.bytesPerSecond, systemClock);
  }

  get hasCome(): boolean {
    return this.#hasCome;
  }

  newPath(): string {
    return path.resolve(this.#request.directory, randomBytes(8).toString('hex'));
  }

  async write(file: DirectFile, to: string, pieces: AsyncIterable<Buffer>): Promise<FileDigest> {
    const { onBytes, signal } = this.#request;
    try {
      return await writeNewFile(fileCalls(true), to, 0o600, async (write) => {
        let bytes = 0;
        for await (const piece of pieces) {
          await write(piece);
          bytes += piece.length;
          this.#written += piece.length;
          this.#request.onGrowing(file, bytes);
          onBytes(this.#written);
          await this.#throttle.pay(piece.length, signal);
        }
      });
    } finally {
      this.#request.onGrowing(file, undefined);
    }
  }

  async add(arrival: DirectArrival, bytes: number): Promise<void> {
    if (!this.#hasCome) this.#request.onWay(this.#way);
    this.#hasCome = true;
    this.#waiting.push(arrival);
    this.#waitingBytes += bytes;
    const isLong = performance.now() - this.#handedOverAt >= LONG_MS;
    if (isLong || this.#waiting.length >= MANY_FILES || this.#waitingBytes >= MANY_BYTES) await this.handOver();
  }

  async handOver(): Promise<void> {
    const arrivals = this.#waiting;
    this.#waiting = [];
    this.#waitingBytes = 0;
    if (arrivals.length > 0) await this.#request.onFiles(arrivals);
    this.#handedOverAt = performance.now();
  }
}

/** Where rsync keeps partial files. No result can have this name, which is that of temporary files. */
export const PARTIAL_DIRECTORY = '.jobtail-0000000000000000.partial';
/** Where rsync writes files that are not complete, below its target. Nothing here is used again. */
export const GROWING_DIRECTORY = '.jobtail-0000000000000001.partial';

/** Creates the directory of an request; removes leftovers of a kill, except what can be resumed. */
export async function prepareDirectory(directory: string): Promise<void> {
  await makeOwnDirectory(directory);
  await clearFiles(directory, PARTIAL_DIRECTORY);
}

/** Creates a directory of the agent; refuses a link or a file in its place. Its parent exists. */
export async function makeOwnDirectory(directory: string): Promise<void> {
  await fs.mkdir(directory, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  if (!(await fs.lstat(directory)).isDirectory()) throw inTheWay(directory, 'directory');
}

/** Removes the files below `directory`, except in directories named `kept`; follows no link. */
async function clearFiles(directory: string, kept: string): Promise<void> {
  for (const entry of await fs.readdir(directory, { withFileTypes: true })) {
    const at = path.join(directory, entry.name);
    if (!entry.isDirectory()) await fs.rm(at, { force: true });
    else if (entry.name !== kept) await clearFiles(at, kept);
  }
}

/** The modification time given to a directory; any change replaces it. */
const UNCHANGED_SECONDS = 1;

/**
 * Creates the partial directories of rsync for these files, so that unused ones can be detected afterwards. One that
 * cannot be created counts as used.
 */
export async function preparePartialDirectories(directory: string, names: readonly string[]): Promise<void> {
  for (const parent of new Set(names.map((name) => path.dirname(name)))) {
    const partial = path.join(directory, parent, PARTIAL_DIRECTORY);
    await fs
      .mkdir(partial, { recursive: true, mode: 0o700 })
      .then(() => fs.utimes(partial, UNCHANGED_SECONDS, UNCHANGED_SECONDS))
      .catch(() => {});
  }
}

/** Whether the partial directory beside a file was never used. */
export async function isPartialUnused(file: string): Promise<boolean> {
  const stat = await fs.lstat(path.join(path.dirname(file), PARTIAL_DIRECTORY)).catch(() => undefined);
  return stat?.mtimeMs === UNCHANGED_SECONDS * 1000;
}

export async function lengthOf(file: string): Promise<number | undefined> {
  const stat = await fs.lstat(file).catch(() => undefined);
  return stat?.isFile() ? stat.size : undefined;
}

export async function bytesBelow(directory: string): Promise<number> {
  let bytes = 0;
  for (const entry of await fs.readdir(directory, { withFileTypes: true })) {
    const at = path.join(directory, entry.name);
    bytes += entry.isDirectory() ? await bytesBelow(at) : ((await lengthOf(at)) ?? 0);
  }
  return bytes;
}
