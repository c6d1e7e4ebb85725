/**
 * Several calls at a time, where the configuration allows that. Their number, by the round trip: one more for each 7 ms of
 * the minimum time to a first byte. When responses usually take twice that time, the number is halved. A lost call, or one
 * refused for overload, sets it to `min`. Calls that may take long get the places that short ones leave free, at least half.
 */
import PQueue from 'p-queue';

const MS_PER_PLACE = 7;
/** By one response: four times as many calls after each round trip. */
const FIRST_GROWTH = 3;
/** Usual times above this multiple of the minimum suggest that calls wait for each other in the server. */
const MAX_SLOWNESS = 2;
const WEIGHT = 1 / 8;

export class Places {
  /** Where long calls wait for a place that is not reserved. */
  readonly long = new PQueue();
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

  /** Calls at a time for one of so many agents. `short`: calls that run or wait; `hanging`: long ones to leave out. */
  limit(agents: number, short: number, hanging: number): number {
    const places = this.among(agents);
    const reserved = Math.min(Math.ceil(places / 2), Math.max(1, short));
    // With one place, a long call that waits in front of it would delay more urgent ones.
    const long = places > 1 ? places - reserved + hanging : Number.POSITIVE_INFINITY;
    // Setting it starts calls.
    if (this.long.concurrency !== long) this.long.concurrency = long;
    return places;
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
    this.#minMs = Math.min(this.#minMs, firstByteMs);
    this.#usualMs = this.#usualMs === undefined ? firstByteMs : this.#usualMs + WEIGHT * (firstByteMs - this.#usualMs);
    this.#ignored = Math.max(0, this.#ignored - 1);
    const places = this.among(1);
    const isSlow = this.#usualMs > MAX_SLOWNESS * this.#minMs;
    const growth = this.#isCareful ? 1 / places : FIRST_GROWTH;
    if (isSlow && this.#ignored === 0) this.#backOffTo(places / 2);
    else if (!isSlow && isWanted)
      this.#allowed = Math.min(this.#allowed + growth, places + Math.max(1, growth), this.#max);
  }

  lost(): void {
    this.#backOffTo(this.#min);
  }

  #backOffTo(places: number): void {
    this.#ignored = this.among(1);
    this.#allowed = Math.max(this.#min, places);
    this.#isCareful = true;
  }
}
