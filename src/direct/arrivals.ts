/** Files that came, handed over some at a time: each time costs a flush, and a kill loses only what was not. */
import type { DirectArrival, DirectFile, DirectOrder } from '../agent/ports.ts';

const MANY_FILES = 500;
const MANY_BYTES = 32 * 1024 * 1024;
const LONG_MS = 2_000;

export class Arrivals<File extends DirectFile> {
  readonly #onFiles: DirectOrder<File>['onFiles'];
  #waiting: DirectArrival<File>[] = [];
  #bytes = 0;
  #handedOverAt = performance.now();

  constructor({ onFiles }: Pick<DirectOrder<File>, 'onFiles'>) {
    this.#onFiles = onFiles;
  }

  async add(arrival: DirectArrival<File>, bytes: number): Promise<void> {
    this.#waiting.push(arrival);
    this.#bytes += bytes;
    const isLong = performance.now() - this.#handedOverAt >= LONG_MS;
    if (isLong || this.#waiting.length >= MANY_FILES || this.#bytes >= MANY_BYTES) await this.handOver();
  }

  /** Hands over what waits. */
  async handOver(): Promise<void> {
    const arrivals = this.#waiting;
    this.#waiting = [];
    this.#bytes = 0;
    if (arrivals.length > 0) await this.#onFiles(arrivals);
    this.#handedOverAt = performance.now();
  }
}
