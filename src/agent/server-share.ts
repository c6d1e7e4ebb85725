/**
 * How often the agent may call the service: one rule, by a clock that the caller passes in.
 *
 * By default the server works for this agent half of the time. Each answer shows how long the server worked for it, and
 * costs twice that time. A call that is on its way costs as much as the last answer did until its own answer arrives, so
 * calls overlap on a long wire and not in the server. Idle time is kept as credit for a short burst. A fixed
 * number of requests a minute replaces the measurement. A pause that the server requests (429, 503, `Retry-After`) holds
 * in both cases, for all calls.
 */

import { type Clock, sleep } from '../system/clock.ts';

/** One answer of the server, when its first byte arrived. */
export interface ServerAnswer {
  readonly status: number;
  /** Time to the first byte. */
  readonly firstByteMs: number;
  /** The same, less the round trip. */
  readonly workMs: number;
  /** `Retry-After`. */
  readonly retryAfterMs: number | undefined;
}

export interface ServerShareOptions {
  /** A fixed limit instead of the measured share; null for the measured share. */
  readonly requestsPerMinute: number | null;
  /** A clock that only goes forward, in milliseconds. */
  readonly monotonic: () => number;
}

/** The part of the time for which the server may work for this agent. */
const SHARE = 0.5;
/** Idle time that a burst may use up. */
const MAX_CREDIT_MS = 2_000;
/** The same for a fixed limit: makes up for timers that fire late. */
const MAX_FIXED_CREDIT_MS = 50;
/** One answer delays the next calls no longer than this, however long the server worked for it. */
const MAX_DELAY_MS = 10_000;
/** The pause after a 429 or 503 without `Retry-After`; it doubles while such answers follow each other. */
export const FIRST_PAUSE_MS = 500;
export const MAX_PAUSE_MS = 30_000;

export class ServerShare {
  readonly #options: ServerShareOptions;
  readonly #costOfRequestMs: number | undefined;
  /** Until then, all work of the past is made up for. */
  #settledAt = Number.NEGATIVE_INFINITY;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  #nextPauseMs = FIRST_PAUSE_MS;
  #callsOnTheirWay = 0;
  #lastWorkMs = 0;
  #agents = 1;
  #onMove: (answer?: ServerAnswer) => void = () => {};

  constructor(options: ServerShareOptions) {
    this.#options = options;
    const { requestsPerMinute } = options;
    this.#costOfRequestMs = requestsPerMinute === null ? undefined : 60_000 / requestsPerMinute;
  }

  /** Sets what is called when `opensAt` may have changed other than by the clock or by `divideAmong`, with each answer. */
  onMove(callback: (answer?: ServerAnswer) => void): void {
    this.#onMove = callback;
  }

  /** Sets how many agents divide the measured share among them. */
  divideAmong(agents: number): void {
    this.#agents = Math.max(1, agents);
  }

  /** When the next call may begin: in the past if it may begin now. */
  get opensAt(): number {
    const reservedMs = this.#costOfRequestMs === undefined ? this.#callsOnTheirWay * this.#costOf(this.#lastWorkMs) : 0;
    return Math.max(this.#pausedUntil, this.#settledAt + reservedMs);
  }

  /** Milliseconds that the server's request for a pause still holds all calls; 0 if there is none. */
  get pauseMs(): number {
    return Math.max(0, this.#pausedUntil - this.#options.monotonic());
  }

  /** Waits until no pause holds any more; rejects with `aborted` when the signal fires. */
  async pauseOver(clock: Clock, signal: AbortSignal): Promise<void> {
    while (this.pauseMs > 0) await sleep(clock, this.pauseMs, signal);
  }

  /** Counts a call that begins. */
  begun(): void {
    this.#callsOnTheirWay += 1;
    if (this.#costOfRequestMs !== undefined) this.#charge(this.#costOfRequestMs, 0, MAX_FIXED_CREDIT_MS);
    this.#onMove();
  }

  /** Counts the end of a call, with or without an answer. */
  ended(): void {
    this.#callsOnTheirWay -= 1;
    this.#onMove();
  }

  /** Takes an answer into account. Returns the length of the pause that it starts or prolongs, if it does. */
  answered(answer: ServerAnswer): number | undefined {
    const pauseMs = this.#takeIn(answer);
    this.#onMove(answer);
    return pauseMs;
  }

  #takeIn({ status, workMs, retryAfterMs }: ServerAnswer): number | undefined {
    this.#lastWorkMs = workMs;
    if (this.#costOfRequestMs === undefined) this.#charge(this.#costOf(workMs), workMs, MAX_CREDIT_MS);
    const isOverload = status === 429 || status === 503;
    if (!isOverload && (status < 400 || retryAfterMs === undefined)) {
      if (status < 400) this.#nextPauseMs = FIRST_PAUSE_MS;
      return undefined;
    }
    return this.#pause(retryAfterMs);
  }

  #costOf(workMs: number): number {
    return Math.min((workMs / SHARE) * this.#agents, workMs + MAX_DELAY_MS);
  }

  /** Charges for something that began `elapsedMs` ago. */
  #charge(costMs: number, elapsedMs: number, maxCreditMs: number): void {
    const oldest = this.#options.monotonic() - elapsedMs - maxCreditMs;
    this.#settledAt = Math.max(this.#settledAt, oldest) + costMs;
  }

  #pause(retryAfterMs: number | undefined): number | undefined {
    // Calls that were on their way together get the same answer: it counts once.
    if (retryAfterMs === undefined && this.pauseMs > 0) return undefined;
    const pauseMs = retryAfterMs ?? this.#nextPauseMs;
    if (retryAfterMs === undefined) this.#nextPauseMs = Math.min(MAX_PAUSE_MS, 2 * this.#nextPauseMs);
    const until = this.#options.monotonic() + pauseMs;
    if (until <= this.#pausedUntil) return undefined;
    this.#pausedUntil = until;
    return pauseMs;
  }
}
