/** The pause after a failure: doubles up to a maximum, with jitter so that many agents do not return together. */

export interface BackOffOptions {
  readonly firstMs: number;
  readonly maxMs: number;
  /** The monotonic clock. */
  readonly nowMs: () => number;
  /** In [0, 1). */
  readonly random: () => number;
}

/** The nominal pause after so many failures in a row. */
export const nominalPause = (
  failures: number,
  { firstMs, maxMs }: { readonly firstMs: number; readonly maxMs: number },
) => Math.min(maxMs, firstMs * 2 ** Math.max(0, failures - 1));

export class BackOff {
  readonly #options: BackOffOptions;
  #failures = 0;
  #untilMs = Number.NEGATIVE_INFINITY;

  constructor(options: BackOffOptions) {
    this.#options = options;
  }

  get failures(): number {
    return this.#failures;
  }

  get remainingMs(): number {
    return Math.max(0, this.#untilMs - this.#options.nowMs());
  }

  /** Starts the next pause: three quarters of its nominal length up to all of it. */
  lengthen(): void {
    const { random } = this.#options;
    this.#failures += 1;
    const nominalMs = nominalPause(this.#failures, this.#options);
    this.pause(nominalMs * (0.75 + 0.25 * random()));
  }

  /** Starts the next pause, of at least what the server asked for. */
  failed({ retryAfterMs = 0 }: { readonly retryAfterMs?: number | undefined }): void {
    this.lengthen();
    this.pause(retryAfterMs);
  }

  pause(ms: number): void {
    this.#untilMs = Math.max(this.#untilMs, this.#options.nowMs() + ms);
  }

  reset(): void {
    this.#failures = 0;
    this.#untilMs = Number.NEGATIVE_INFINITY;
  }
}
