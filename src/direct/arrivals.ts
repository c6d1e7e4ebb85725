/**
 * The files copied from a share: counts and limits bytes, and passes complete files on in batches. Each batch costs a
 * flush, and a kill loses only files that were not passed on.
 */
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import type { DirectArrival, DirectRequest } from '../agent/ports.ts';
import { systemClock, Throttle } from '../system/clock.ts';
import { type FileDigest, fileCalls, writeNewFile } from '../system/files.ts';

const MANY_FILES = 500;
const MANY_BYTES = 32 * 1024 * 1024;
const LONG_MS = 2_000;

export class Arrivals {
  readonly #request: DirectRequest;
  readonly #throttle: Throttle;
  #written = 0;
  #waiting: DirectArrival[] = [];
  #waitingBytes = 0;
  #handedOverAt = performance.now();

  constructor(request: DirectRequest) {
    this.#request = request;
    this.#throttle = new Throttle(request.bytesPerSecond, systemClock);
  }

  newPath(): string {
    return path.resolve(this.#request.directory, randomBytes(8).toString('hex'));
  }

  async write(to: string, pieces: AsyncIterable<Buffer>): Promise<FileDigest> {
    const { onBytes, signal } = this.#request;
    return await writeNewFile(fileCalls(true), to, 0o600, async (write) => {
      for await (const piece of pieces) {
        await write(piece);
        this.#written += piece.length;
        onBytes(this.#written);
        await this.#throttle.pay(piece.length, signal);
      }
    });
  }

  async add(arrival: DirectArrival, bytes: number): Promise<void> {
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
