/** The machine's time: clocks and timers, what goes by them, and the time of the processor. */
import { stopped } from '../errors.ts';

export const DAY_MS = 24 * 60 * 60_000;

/** Time, so that tests can hold it. */
export interface Clock {
  /** Wall clock, in milliseconds since 1970: for what is kept and shown. */
  now(): number;
  /** A clock that only goes forward, in milliseconds: for what is due. */
  monotonic(): number;
  /** Calls back after `delayMs`; the returned function takes that back. */
  timer(delayMs: number, callback: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  timer(delayMs, callback) {
    const timer = setTimeout(callback, delayMs);
    return () => clearTimeout(timer);
  },
};

/** Resolves after `delayMs`; rejects with `aborted` when the signal fires. */
export function sleep(clock: Pick<Clock, 'timer'>, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      cancel();
      reject(stopped());
    };
    const cancel = clock.timer(delayMs, () => {
      signal?.removeEventListener('abort', stop);
      resolve();
    });
    if (signal?.aborted === true) stop();
    else signal?.addEventListener('abort', stop, { once: true });
  });
}

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

/** Milliseconds of the processor that this process has had: on a busy machine, those of the clock are over before. */
export function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
