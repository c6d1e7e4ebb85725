/**
 * The stage of a job in this agent, and when the job may be settled:
 *   unfollowed   not polled; its last pass may run
 *   unclear      its job state is not known: settled after the quiet time of its command, once the service was asked
 *   active       not settled; as if unclear when its state was not reported for ten minutes
 *   over         settled after a quiet minute, because files may be flushed late, once the state was reported again
 *   deleted      settled at once, and its files stay as they are
 *   stopped      the agent stops, or does not own the job any more: nothing is begun
 * Times use the monotonic clock. The time before a start counts. Failing files delay the end.
 */
import { isRunning, phaseOf } from '../../job-information.ts';
import type { JobInformationRow, JobRow } from '../../store/rows.ts';
import type { Clock } from '../../system/clock.ts';
import { DELETED } from '../pass/deleted-jobs.ts';

export type Stage = 'unfollowed' | 'unclear' | 'active' | 'over' | 'deleted' | 'stopped';

/** Files are flushed after the job state is final (docs/dev/servers.md 10.3). */
const FLUSH_MS = 60_000;
const FLUSH_POLLS = 2;
/** How long files, listings or last passes that fail delay the end of their job: there may be bytes that are not here. */
const FAILING_MS = 15 * 60_000;
/** Maximum age of a reported job state. */
const REPORTED_MS = 10 * 60_000;

export class JobStage {
  readonly #clock: Clock;
  #current: Stage = 'unfollowed';
  #settleAfterMs: number | null = null;
  /** Start of the time in which all polls succeeded without news. */
  #quietSince = 0;
  #reportedAt = 0;
  /** Whether the service was asked since the job is followed: a stored report may be of an earlier run of the job. */
  #isConfirmed = false;
  /** Start of the time in which the job is over and no bytes came. */
  #overSince = 0;
  /** Last growth of a live file, or last change of the job state. */
  #grewAt = 0;
  #jobState: string | null = null;
  /** Successful polls and searches without news since then. */
  #polls = 0;
  /** Start of the time in which only failures of files, listings or last passes delayed the end. */
  #delayedSince: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get current(): Stage {
    return this.#current;
  }

  get isFollowed(): boolean {
    return this.#current !== 'unfollowed' && this.#current !== 'stopped';
  }

  /** Applies a watch request; returns whether the job is newly followed. `before`: the last report before this start. */
  follow(job: JobRow, before: JobInformationRow | undefined): boolean {
    this.#settleAfterMs = job.settleAfterMs;
    if (this.isFollowed || this.#current === 'stopped') return false;
    this.#current = stageOf(before?.information.state ?? null);
    // The wall clock is used once, for the time before this start: it may be set at any time.
    const [wall, now] = [this.#clock.now(), this.#clock.monotonic()];
    const quietSince = Math.max(job.grownAt ?? 0, job.watchedAt);
    this.#quietSince = now - Math.max(0, wall - quietSince);
    this.#reportedAt = now;
    this.#overSince = now - Math.max(0, wall - Math.max(quietSince, before?.since ?? 0));
    this.#grewAt = this.#overSince;
    this.#jobState = before?.information.state ?? null;
    this.#polls = 0;
    this.#isConfirmed = false;
    return true;
  }

  leave(): void {
    if (this.#current !== 'stopped') this.#current = 'unfollowed';
  }

  stop(): void {
    this.#current = 'stopped';
  }

  report(jobState: string | null): Stage {
    const before = this.#current;
    if (this.isFollowed && before !== 'deleted') this.#current = stageOf(jobState);
    if (jobState !== this.#jobState) this.#grewAt = this.#clock.monotonic();
    this.#jobState = jobState;
    this.#reportedAt = this.#clock.monotonic();
    this.#isConfirmed = true;
    if (this.#current === 'over' && before !== 'over') this.#waitAnew();
    return before;
  }

  /** The service refuses to report the job: the stored report is the last one. */
  refused(): void {
    this.#isConfirmed = true;
  }

  grew(): void {
    this.endQuiet();
    this.#grewAt = this.#quietSince;
  }

  /** Milliseconds of running without growth, if they are at least `limitMs`; else null. */
  stalledMs(limitMs: number | null): number | null {
    const quietMs = this.#clock.monotonic() - this.#grewAt;
    return limitMs !== null && this.isFollowed && isRunning(this.#jobState) && quietMs >= limitMs ? quietMs : null;
  }

  endQuiet(): void {
    this.#quietSince = this.#clock.monotonic();
    this.#waitAnew();
  }

  /** `isAnswered`: the service was asked; of a job that it reports as over, it may have no file to ask for. */
  polled(beganAt: number, isAnswered: boolean): void {
    if (beganAt >= this.#overSince && (isAnswered || this.#current === 'over')) this.#polls += 1;
  }

  get isSettled(): boolean {
    if (this.#current === 'deleted') return true;
    const isKnown = this.#current !== 'over' || this.#isConfirmed;
    return isKnown && this.settlesInMs <= 0 && this.#polls >= FLUSH_POLLS;
  }

  /** Whether the last complete pass is due; `isFailing`: whether a file or the listing of the job fails. */
  isSettling(isFailing: () => boolean): boolean {
    if (!this.isSettled || this.#current === 'deleted' || !isFailing()) return this.isSettled;
    this.delayed();
    return this.isOverdue;
  }

  /** Records that only a failure delays the end of the job. */
  delayed(): void {
    this.#delayedSince ??= this.#clock.monotonic();
  }

  /** Whether failures have delayed the end of the job for as long as they may. */
  get isOverdue(): boolean {
    const since = this.#delayedSince;
    return since !== undefined && this.#clock.monotonic() - since >= FAILING_MS;
  }

  /** Milliseconds until that is so; infinite if nothing delays the end, and afterwards. */
  get overdueInMs(): number {
    const since = this.#delayedSince;
    if (since === undefined || this.isOverdue) return Number.POSITIVE_INFINITY;
    return since + FAILING_MS - this.#clock.monotonic();
  }

  /** Milliseconds until a poll may settle the job; 0 or less from then on. */
  get settlesInMs(): number {
    if (!this.isFollowed) return Number.POSITIVE_INFINITY;
    if (this.#current === 'deleted') return 0;
    const now = this.#clock.monotonic();
    if (this.#current === 'over') return FLUSH_MS - (now - this.#overSince);
    const isActive = this.#current !== 'unclear' && now - this.#reportedAt < REPORTED_MS;
    if (isActive || this.#settleAfterMs === null) return Number.POSITIVE_INFINITY;
    return this.#settleAfterMs - (now - this.#quietSince);
  }

  #waitAnew(): void {
    this.#overSince = this.#clock.monotonic();
    this.#polls = 0;
    this.#delayedSince = undefined;
  }
}

function stageOf(jobState: string | null): Stage {
  return jobState === DELETED ? 'deleted' : (phaseOf(jobState) ?? 'unclear');
}
