/** Spaces attempts while a server does not answer: whatever fails at once must not be tried again at once. */

import { type Clock, systemClock } from '../../system/clock.ts';

/** Less than three attempts a second. */
const SPACING_MS = 400;

export class Spacing {
  readonly #clock: Clock;
  #isResponding = false;
  #nextAt = Number.NEGATIVE_INFINITY;
  readonly #waiting = new Set<() => void>();

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  /** Waits for the turn of an attempt: none, while the last one was answered. @throws the reason of the signal */
  async turn(signal: AbortSignal): Promise<void> {
    while (!this.#isResponding) {
      signal.throwIfAborted();
      const waitMs = this.#nextAt - this.#clock.monotonic();
      if (waitMs <= 0) {
        this.#nextAt = this.#clock.monotonic() + SPACING_MS;
        return;
      }
      await this.#change(waitMs, signal);
    }
  }

  responded(): void {
    this.#isResponding = true;
    for (const wake of this.#waiting) wake();
  }

  /** A connection that was open broke: the next attempt shows whether the server is there. */
  doubted(): void {
    this.#isResponding = false;
  }

  failed(): void {
    this.doubted();
    this.#nextAt = Math.max(this.#nextAt, this.#clock.monotonic() + SPACING_MS);
  }

  async #change(waitMs: number, signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      const wake = () => {
        cancel();
        signal.removeEventListener('abort', wake);
        this.#waiting.delete(wake);
        resolve();
      };
      const cancel = this.#clock.timer(waitMs, wake);
      signal.addEventListener('abort', wake, { once: true });
      this.#waiting.add(wake);
    });
  }
}
