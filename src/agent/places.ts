/**
 * The number of calls at a time, by the round trip: one more for each 7 ms of the minimum time to a first byte. When
 * responses usually take twice that time, the number is halved. A lost call, or one refused for overload, sets it to
 * `min`.
 */

const MS_PER_PLACE = 7;
/** By one response: four times as many calls after each round trip. */
const FIRST_GROWTH = 3;
/** Usual times above this multiple of the minimum suggest that calls wait for each other in the server. */
const MAX_SLOWNESS = 2;
const WEIGHT = 1 / 8;

export class Places {
  readonly #min: number;
  readonly #max: number;
  /** Grows with each response until the first sign of overload, then by one with each round of responses. */
  #allowed: number;
  #isCareful = false;
  /** Responses to ignore after a sign of overload: those under way show the same one. */
  #ignored = 0;
  /** Never forgotten: under a lasting load, a newer minimum would include the wait in the server. */
  #minMs = Number.POSITIVE_INFINITY;
  #usualMs: number | undefined;

  constructor(min: number, max: number) {
    this.#min = min;
    this.#max = Math.max(min, max);
    this.#allowed = min;
  }

  among(agents: number): number {
    const byWay = this.#minMs === Number.POSITIVE_INFINITY ? 0 : Math.floor(this.#minMs / MS_PER_PLACE);
    const max = Math.max(this.#min, Math.min(this.#min + byWay, Math.floor(this.#max / agents)));
    return Math.min(max, Math.floor(this.#allowed));
  }

  answered(
    { status, firstByteMs }: { readonly status: number; readonly firstByteMs: number },
    isWanted: boolean,
  ): void {
    if (status === 429 || status === 503) {
      this.lost();
      return;
    }
    this.#measure(firstByteMs);
    this.#ignored = Math.max(0, this.#ignored - 1);
    const places = this.among(1);
    const isSlow = (this.#usualMs ?? 0) > MAX_SLOWNESS * this.#minMs;
    if (isSlow && this.#ignored === 0) this.#backOffTo(places / 2);
    else if (!isSlow && isWanted) this.#grow(places);
  }

  lost(): void {
    this.#backOffTo(this.#min);
  }

  #backOffTo(places: number): void {
    this.#ignored = this.among(1);
    this.#allowed = Math.max(this.#min, places);
    this.#isCareful = true;
  }

  #grow(places: number): void {
    const growth = this.#isCareful ? 1 / places : FIRST_GROWTH;
    this.#allowed = Math.min(this.#allowed + growth, places + Math.max(1, growth), this.#max);
  }

  #measure(ms: number): void {
    this.#minMs = Math.min(this.#minMs, ms);
    this.#usualMs = this.#usualMs === undefined ? ms : this.#usualMs + WEIGHT * (ms - this.#usualMs);
  }
}
