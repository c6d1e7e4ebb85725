/** The pause after a failure: longer after each one, with jitter so that many agents do not come back together. */

export interface BackOffOptions {
  readonly firstMs: number;
  readonly maxMs: number;
  /** A clock that never jumps, in milliseconds. */
  readonly nowMs: () => number;
  /** From 0 up to 1. */
  readonly random: () => number;
}

export class BackOff {
  readonly #options: BackOffOptions;
  #failures = 0;
  #untilMs = Number.NEGATIVE_INFINITY;

  constructor(options: BackOffOptions) {
    this.#options = options;
  }

  /** Failures in a row. */
  get failures(): number {
    return this.#failures;
  }

  /** Milliseconds until the pause is over, 0 if there is none. */
  get remainingMs(): number {
    return Math.max(0, this.#untilMs - this.#options.nowMs());
  }

  /** After a failure: the next pause, of three quarters of its nominal length up to all of it. */
  lengthen(): void {
    const { firstMs, maxMs, random } = this.#options;
    const nominalMs = Math.min(maxMs, firstMs * 2 ** this.#failures);
    this.#failures += 1;
    this.pause(nominalMs * (0.75 + 0.25 * random()));
  }

  /** A pause of at least `ms`. */
  pause(ms: number): void {
    this.#untilMs = Math.max(this.#untilMs, this.#options.nowMs() + ms);
  }

  /** After a success: no pause, and the next one begins short. */
  reset(): void {
    this.#failures = 0;
    this.#untilMs = Number.NEGATIVE_INFINITY;
  }
}
