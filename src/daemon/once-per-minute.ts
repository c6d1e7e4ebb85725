/** Counts what happens too often for the log: the first event of each key, then the number of those in each minute. */
const MINUTE_MS = 60_000;

export class OncePerMinute {
  readonly #monotonic: () => number;
  /** By key: when the last line was logged, and the number of events since. */
  readonly #keys = new Map<string, { loggedAt: number; count: number }>();

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** The number of events to log now, with this one; 0: they are logged later. */
  next(key: string): number {
    const now = this.#monotonic();
    const { loggedAt, count } = this.#keys.get(key) ?? { loggedAt: Number.NEGATIVE_INFINITY, count: 0 };
    const isDue = now - loggedAt >= MINUTE_MS;
    if (isDue) this.#forgetBefore(now - 2 * MINUTE_MS);
    this.#keys.set(key, isDue ? { loggedAt: now, count: 0 } : { loggedAt, count: count + 1 });
    return isDue ? count + 1 : 0;
  }

  #forgetBefore(time: number): void {
    for (const [key, { loggedAt }] of this.#keys) if (loggedAt < time) this.#keys.delete(key);
  }
}
