/** Requests an hour and address (docs/dev/servers.md 6.1). */
import { HttpRefusal } from './refusals.ts';

const HOUR_MS = 3_600_000;

export class RateLimit {
  readonly #clock: () => number;
  readonly #windows = new Map<string, { readonly startMs: number; requests: number }>();

  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /**
   * Counts a request; returns the headers that its response has. Beyond `perHour` it throws a 429 with the seconds until
   * the hour is over, and without these headers (docs/dev/rest.md 4.5).
   */
  count(address: string, perHour: number): Map<string, string> {
    const nowMs = this.#clock();
    let window = this.#windows.get(address);
    if (window === undefined || nowMs >= window.startMs + HOUR_MS) {
      window = { startMs: nowMs, requests: 0 };
      this.#windows.set(address, window);
    }
    window.requests += 1;
    if (window.requests <= perHour)
      return new Map([
        ['x-rate-limit-limit', '1h'],
        ['x-rate-limit-remaining', String(perHour - window.requests)],
        ['x-rate-limit-reset', new Date(window.startMs + HOUR_MS).toISOString()],
      ]);
    const seconds = Math.ceil((window.startMs + HOUR_MS - nowMs) / 1000);
    throw new HttpRefusal(429, `API calls quota exceeded! maximum admitted ${perHour} per 1h.`, {
      'retry-after': String(seconds),
    });
  }
}
