/**
 * How many calls may be on their way at a time: more where the wire is long. There may be one more for each 8 ms of the
 * least time to a first byte, as long as the server bears it: half of the places go when answers usually take twice that
 * time, and all but `min` with a call that is lost or refused for overload.
 */
import type { ServerAnswer } from './server-share.ts';

/** A longer way has room for one more call. */
const MS_PER_PLACE = 8;
/** Answers that usually take so many times the least time are a sign that calls wait for each other. */
const MAX_SLOWNESS = 2;
/** Weight of the last answer in the usual time. */
const WEIGHT = 1 / 8;

export class Places {
  readonly #min: number;
  readonly #max: number;
  /** Grows by one with each answer until the first sign of overload, then by one with each round of answers. */
  #allowed: number;
  #isCareful = false;
  /** Answers until the next sign counts: those that were on their way show the same one. */
  #ignored = 0;
  /** Never forgotten: under a load that lasts, a newer one would hold the waiting in the server. */
  #minMs = Number.POSITIVE_INFINITY;
  #usualMs: number | undefined;

  constructor(min: number, max: number) {
    this.#min = min;
    this.#max = Math.max(min, max);
    this.#allowed = min;
  }

  /** Calls at a time, where so many agents share the server. */
  among(agents: number): number {
    const byWay = this.#minMs === Number.POSITIVE_INFINITY ? 0 : Math.floor(this.#minMs / MS_PER_PLACE);
    const max = Math.max(this.#min, Math.min(this.#min + byWay, Math.floor(this.#max / agents)));
    return Math.min(max, Math.floor(this.#allowed));
  }

  /** Takes an answer into account. `isWanted`: more calls wait. */
  answered({ status, firstByteMs }: Pick<ServerAnswer, 'status' | 'firstByteMs'>, isWanted: boolean): void {
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

  /** A call ended without an answer, or the server refused it for overload. */
  lost(): void {
    this.#backOffTo(this.#min);
  }

  #backOffTo(places: number): void {
    this.#ignored = this.among(1);
    this.#allowed = Math.max(this.#min, places);
    this.#isCareful = true;
  }

  #grow(places: number): void {
    this.#allowed = Math.min(this.#allowed + (this.#isCareful ? 1 / places : 1), places + 1, this.#max);
  }

  #measure(ms: number): void {
    this.#minMs = Math.min(this.#minMs, ms);
    this.#usualMs = this.#usualMs === undefined ? ms : this.#usualMs + WEIGHT * (ms - this.#usualMs);
  }
}
