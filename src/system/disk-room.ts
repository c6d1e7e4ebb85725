/** What a download may take: of the disk, of the line. */
import fs from 'node:fs/promises';
import { JobtailError } from '../errors.ts';
import { type Clock, sleep } from './clock.ts';

/** Keeps some room on the disk of a directory free (`mirror.minFreeBytes`). */
export class DiskReserve {
  readonly #directory: string;
  readonly #minFreeBytes: number;

  constructor(directory: string, minFreeBytes: number) {
    this.#directory = directory;
    this.#minFreeBytes = minFreeBytes;
  }

  /** Whether so many bytes more can be written. */
  async hasRoomFor(bytes: number): Promise<boolean> {
    if (this.#minFreeBytes === 0) return true;
    const { bavail, bsize } = await fs.statfs(this.#directory);
    return bavail * bsize - bytes >= this.#minFreeBytes;
  }

  /** The reserve begins. */
  outOfRoom(): JobtailError {
    return new JobtailError('disk-full', `less than mirror.minFreeBytes would stay free in ${this.#directory}`, {
      hint: 'free some space, or lower mirror.minFreeBytes; the agent goes on by itself',
    });
  }

  async require(bytes: number): Promise<void> {
    if (!(await this.hasRoomFor(bytes))) throw this.outOfRoom();
  }
}

/** Holds all downloads together to so many bytes a second (`results.bandwidthLimit`). */
export class Throttle {
  readonly #bytesPerSecond: number | null;
  readonly #clock: Clock;
  #freeAt = 0;

  constructor(bytesPerSecond: number | null, clock: Clock) {
    this.#bytesPerSecond = bytesPerSecond;
    this.#clock = clock;
  }

  /** Waits until bytes that arrived are paid for. */
  async pay(bytes: number, signal: AbortSignal): Promise<void> {
    if (this.#bytesPerSecond === null) return;
    const now = this.#clock.monotonic();
    this.#freeAt = Math.max(now, this.#freeAt) + (bytes / this.#bytesPerSecond) * 1_000;
    if (this.#freeAt > now) await sleep(this.#clock, this.#freeAt - now, signal);
  }
}
