/** Holds downloads together to so many bytes a second (`results.bandwidthLimit`). */
import { type Clock, sleep } from './clock.ts';

export class Throttle {
  readonly #bytesPerSecond: number | null;
  readonly #clock: Clock;
  #freeAt = 0;

  /** There is no limit if `bytesPerSecond` is null. */
  constructor(bytesPerSecond: number | null, clock: Clock) {
    this.#bytesPerSecond = bytesPerSecond;
    this.#clock = clock;
  }

  /** Waits until bytes that arrived are paid for; rejects with `aborted` when the signal fires. */
  async pay(bytes: number, signal: AbortSignal): Promise<void> {
    if (this.#bytesPerSecond === null) return;
    const now = this.#clock.monotonic();
    this.#freeAt = Math.max(now, this.#freeAt) + (bytes / this.#bytesPerSecond) * 1_000;
    if (this.#freeAt > now) await sleep(this.#clock, this.#freeAt - now, signal);
  }
}
