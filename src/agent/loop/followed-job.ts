/** A job that is followed: how often it is polled, and since when it is quiet. */
import type { JobRow } from '../../store/rows.ts';
import type { Clock } from '../ports.ts';
import { type IntervalLimits, nextInterval } from './interval.ts';

/** A poll that took longer makes the next one of its job patient. */
const SLOW_MS = 5_000;

export class FollowedJob {
  readonly #clock: Clock;
  readonly #limits: IntervalLimits;
  #settleAfterMs: number | null;
  #intervalMs: number;
  /** Since when all visits went through and brought nothing, by the clock that only goes forward. */
  #quietSince: number;
  #slow = false;

  constructor(job: JobRow, clock: Clock, limits: IntervalLimits) {
    this.#clock = clock;
    this.#limits = limits;
    this.#settleAfterMs = job.settleAfterMs;
    this.#intervalMs = limits.minIntervalMs;
    // The wall clock is asked once, for the time before this start: it may have been set back or forth since.
    const quietMs = Math.max(0, clock.now() - Math.max(job.grownAt ?? 0, job.watchedAt));
    this.#quietSince = clock.monotonic() - quietMs;
  }

  /** Its order may have changed. */
  renew({ settleAfterMs }: JobRow): void {
    this.#settleAfterMs = settleAfterMs;
  }

  /** It grew, or a visit failed. */
  endQuiet(): void {
    this.#quietSince = this.#clock.monotonic();
  }

  /** A poll went through; with news, a second look is wanted soon. Returns the interval to the next one. */
  polled(news: boolean, tookMs: number): number {
    this.#slow = tookMs > SLOW_MS;
    this.#intervalMs = nextInterval(this.#intervalMs, news, this.#limits);
    return this.#intervalMs;
  }

  /** Its last poll took long. */
  get slow(): boolean {
    return this.#slow;
  }

  /** Quiet for as long as its order says it takes to settle. */
  get isSettled(): boolean {
    return this.#settleAfterMs !== null && this.#clock.monotonic() - this.#quietSince >= this.#settleAfterMs;
  }
}
