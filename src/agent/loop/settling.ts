/**
 * When a job that is followed may be settled: when the middleware says that it is over and what is flushed late has come;
 * where no job state is told, when it was quiet for as long as its order says. What was seen before a start counts.
 */
import { type JobPhase, phaseOf } from '../../job-information.ts';
import type { JobInformationRow, JobRow } from '../../store/rows.ts';
import type { Clock } from '../../system/clock.ts';
import { DELETED } from '../pass/complete-pass.ts';

/** Files are flushed after the state says that the job is over (docs/servers.md 10.3). */
const FLUSH_MS = 60_000;
const FLUSH_POLLS = 2;
/** A job state that was not told again for so long is none. */
const TOLD_MS = 10 * 60_000;

export class Settling {
  readonly #clock: Clock;
  #settleAfterMs: number | null;
  /** Since when all visits went through and brought nothing, by the clock that only goes forward, as all times here. */
  #quietSince: number;
  #phase: JobPhase | undefined;
  #toldAt = Number.NEGATIVE_INFINITY;
  /** Since when the job is over and nothing came. */
  #overSince = 0;
  /** Polls that began after that, went through, and brought nothing. */
  #polls = 0;
  #isDeleted = false;

  /** `before` is what was told of the job before this start. */
  constructor(job: JobRow, before: JobInformationRow | undefined, clock: Clock) {
    this.#clock = clock;
    this.#settleAfterMs = job.settleAfterMs;
    // The wall clock is asked once, for the time before this start: it may have been set back or forth since.
    const [wall, now] = [clock.now(), clock.monotonic()];
    const quietSince = Math.max(job.grownAt ?? 0, job.watchedAt);
    this.#quietSince = now - Math.max(0, wall - quietSince);
    if (before === undefined) return;
    this.#phase = phaseOf(before.information.state);
    this.#isDeleted = before.information.state === DELETED;
    this.#toldAt = now;
    this.#overSince = now - Math.max(0, wall - Math.max(quietSince, before.since));
  }

  /** Its order may have changed. */
  renew({ settleAfterMs }: JobRow): void {
    this.#settleAfterMs = settleAfterMs;
  }

  /** What the job state means; whether it came to be over just now. */
  told(phase: JobPhase | undefined): boolean {
    const isNewlyOver = phase === 'over' && this.#phase !== 'over';
    if (isNewlyOver) this.#waitAnew();
    this.#phase = phase;
    this.#toldAt = this.#clock.monotonic();
    return isNewlyOver;
  }

  /** It was deleted: nothing is flushed late. */
  deleted(): void {
    this.#isDeleted = true;
  }

  get isDeleted(): boolean {
    return this.#isDeleted;
  }

  /** It grew, or a visit failed. */
  endQuiet(): void {
    this.#quietSince = this.#clock.monotonic();
    this.#waitAnew();
  }

  /** A poll went through that began at `beganAt`, and brought nothing. */
  polled(beganAt: number): void {
    if (beganAt >= this.#overSince) this.#polls += 1;
  }

  get isSettled(): boolean {
    return this.settlesInMs <= 0 && (this.#isDeleted || this.#phase !== 'over' || this.#polls >= FLUSH_POLLS);
  }

  /** Milliseconds until a poll may settle it, if nothing comes until then; 0 or less from then on. */
  get settlesInMs(): number {
    if (this.#isDeleted) return 0;
    const now = this.#clock.monotonic();
    if (this.#phase === 'over') return FLUSH_MS - (now - this.#overSince);
    const isActive = this.#phase === 'active' && now - this.#toldAt < TOLD_MS;
    if (isActive || this.#settleAfterMs === null) return Number.POSITIVE_INFINITY;
    return this.#settleAfterMs - (now - this.#quietSince);
  }

  #waitAnew(): void {
    this.#overSince = this.#clock.monotonic();
    this.#polls = 0;
  }
}
