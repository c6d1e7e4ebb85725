/**
 * The files of one transfer as they arrive: bytes are counted and limited, and whole files are passed on in batches,
 * because each batch costs a flush, and a kill loses only files that were not passed on.
 */
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import type { DirectArrival, DirectOrder } from '../agent/ports.ts';
import { systemClock, Throttle } from '../system/clock.ts';
import { type FileDigest, writeNewFile } from '../system/files.ts';

const MANY_FILES = 500;
const MANY_BYTES = 32 * 1024 * 1024;
const LONG_MS = 2_000;

export class Arrivals {
  readonly #order: DirectOrder;
  readonly #way: string;
  readonly #throttle: Throttle;
  #hasCome = false;
  /** Bytes that were written here. */
  #written = 0;
  #waiting: DirectArrival[] = [];
  #waitingBytes = 0;
  #handedOverAt = performance.now();

  /** `way`: the method that is reported to work once a file has arrived. */
  constructor(order: DirectOrder, way: string) {
    this.#order = order;
    this.#way = way;
    this.#throttle = new Throttle(order.bytesPerSecond, systemClock);
  }

  /** Whether any file has come. */
  get hasCome(): boolean {
    return this.#hasCome;
  }

  /** A path for a file that comes. */
  newPath(): string {
    return path.resolve(this.#order.directory, randomBytes(8).toString('hex'));
  }

  /** Writes a file that comes at the pace of the order; its digest. */
  write(file: string, pieces: AsyncIterable<Buffer>): Promise<FileDigest> {
    const { onBytes, signal } = this.#order;
    return writeNewFile(file, 0o600, async (write) => {
      for await (const piece of pieces) {
        await write(piece);
        this.#written += piece.length;
        onBytes(this.#written);
        await this.#throttle.pay(piece.length, signal);
      }
    });
  }

  /** A file is whole. */
  async add(arrival: DirectArrival, bytes: number): Promise<void> {
    if (!this.#hasCome) this.#order.onWay(this.#way);
    this.#hasCome = true;
    this.#waiting.push(arrival);
    this.#waitingBytes += bytes;
    const isLong = performance.now() - this.#handedOverAt >= LONG_MS;
    if (isLong || this.#waiting.length >= MANY_FILES || this.#waitingBytes >= MANY_BYTES) await this.handOver();
  }

  /** Passes on the waiting files. */
  async handOver(): Promise<void> {
    const arrivals = this.#waiting;
    this.#waiting = [];
    this.#waitingBytes = 0;
    if (arrivals.length > 0) await this.#order.onFiles(arrivals);
    this.#handedOverAt = performance.now();
  }
}
