/** Spaces attempts while a server does not answer: whatever fails at once must not be tried again at once. */

/** Less than three attempts a second. */
export const SPACING_MS = 400;

export class Spacing {
  readonly #nowMs: () => number;
  #isResponding = false;
  #nextAt = Number.NEGATIVE_INFINITY;
  readonly #waiting = new Set<() => void>();

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Waits for the turn of an attempt: none, while the last one was answered. @throws the reason of the signal */
  async turn(signal: AbortSignal): Promise<void> {
    while (!this.#isResponding) {
      signal.throwIfAborted();
      const waitMs = this.#nextAt - this.#nowMs();
      if (waitMs <= 0) {
        this.#nextAt = this.#nowMs() + SPACING_MS;
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
    this.#nextAt = Math.max(this.#nextAt, this.#nowMs() + SPACING_MS);
  }

  async #change(waitMs: number, signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', wake);
        this.#waiting.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, waitMs);
      signal.addEventListener('abort', wake, { once: true });
      this.#waiting.add(wake);
    });
  }
}
