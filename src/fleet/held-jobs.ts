/**
 * The jobs that this agent owns, and until when it may write for each without having heard from the database: the time
 * before the call was sent that prolonged the lease last, plus the lease, less a margin. The database gives a job to
 * somebody else at the earliest a whole lease after it received that call.
 *
 * By the clock that only goes forward and by the wall clock, whichever says so first: the one stands still while the
 * machine sleeps, the other may be set back.
 */
import type { Attempt } from 'pg-boss';
import { JobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import type { Clock } from '../system/clock.ts';

/** For what lies between the check and the write. */
const MARGIN_MS = 1_000;

/**
 * following: the agent follows it. paused: the lease may be over, the agent waits for word. leaving: it is given up, or
 * everything of it is done.
 */
export type HeldState = 'taken' | 'following' | 'paused' | 'leaving';

export interface HeldJob extends Attempt {
  readonly jobId: JobId;
  /** Grows with each owner of the job. */
  readonly attempt: number;
  readonly leaseMs: number;
}

interface Entry {
  job: HeldJob;
  state: HeldState;
  until: number;
  untilWall: number;
  /** When the lease has to be made anew, by the clock that only goes forward. */
  renewAt: number;
}

/** A moment, by both clocks. */
export interface Moment {
  readonly monotonic: number;
  readonly wall: number;
}

export class HeldJobs {
  readonly #clock: Pick<Clock, 'monotonic' | 'now'>;
  readonly #jobs = new Map<JobId, Entry>();
  /** Writes that were refused because the lease was over. */
  refused = 0;

  constructor(clock: Pick<Clock, 'monotonic' | 'now'>) {
    this.#clock = clock;
  }

  /** Taken right before a call is sent. */
  moment(): Moment {
    return { monotonic: this.#clock.monotonic(), wall: this.#clock.now() };
  }

  get size(): number {
    return this.#jobs.size;
  }

  all(...states: readonly HeldState[]): HeldJob[] {
    const wanted = [...this.#jobs.values()].filter(({ state }) => states.length === 0 || states.includes(state));
    return wanted.map(({ job }) => job);
  }

  get(jobId: JobId): HeldJob | undefined {
    return this.#jobs.get(jobId)?.job;
  }

  stateOf(jobId: JobId): HeldState | undefined {
    return this.#jobs.get(jobId)?.state;
  }

  /** Owned since a call that was sent at `sentAt`. */
  add(job: HeldJob, sentAt: Moment, renewAt: number): void {
    const [until, untilWall] = [0, 0];
    this.#jobs.set(job.jobId, { job, state: 'taken', until, untilWall, renewAt });
    this.prolong([job], sentAt);
  }

  /** The same owner, by another job of the queue. */
  renew(job: HeldJob, sentAt: Moment, renewAt: number): void {
    const entry = this.#jobs.get(job.jobId);
    if (entry === undefined) return;
    Object.assign(entry, { job, renewAt });
    this.prolong([job], sentAt);
  }

  setState(jobId: JobId, state: HeldState): void {
    const entry = this.#jobs.get(jobId);
    if (entry !== undefined) entry.state = state;
  }

  remove(jobId: JobId): void {
    this.#jobs.delete(jobId);
  }

  /** The database said that they are still owned, to a call that was sent at `sentAt`. */
  prolong(jobs: readonly HeldJob[], { monotonic, wall }: Moment): void {
    for (const { jobId, leaseMs } of jobs) {
      const entry = this.#jobs.get(jobId);
      if (entry === undefined) continue;
      entry.until = Math.max(entry.until, monotonic + leaseMs - MARGIN_MS);
      entry.untilWall = wall + leaseMs - MARGIN_MS;
    }
  }

  /** Whether it may be written for. */
  isSure(jobId: JobId): boolean {
    const entry = this.#jobs.get(jobId);
    if (entry === undefined) return false;
    return this.#clock.monotonic() < entry.until && this.#clock.now() < entry.untilWall;
  }

  /** @throws JobtailError superseded */
  require(jobId: JobId): void {
    // What is still under way for one that was taken anew began under an earlier lease.
    const isOwned = this.#jobs.has(jobId) && this.stateOf(jobId) !== 'taken';
    if (isOwned && this.isSure(jobId)) return;
    this.refused += 1;
    const why = isOwned ? 'its lease may be over, for the database was not heard' : 'it is not owned';
    throw new JobtailError('superseded', `job ${jobId} is not written for: ${why}`, {
      hint: 'another agent of the fleet goes on with it, or this one, once the database says so',
    });
  }

  /** Of all leases; infinite if there is none. */
  get shortestLeaseMs(): number {
    return Math.min(...[...this.#jobs.values()].map(({ job }) => job.leaseMs));
  }

  /** Those whose lease has to be made anew. */
  dueForRenewal(): HeldJob[] {
    const now = this.#clock.monotonic();
    return [...this.#jobs.values()].filter(({ renewAt }) => renewAt <= now).map(({ job }) => job);
  }

  /** Milliseconds since the database was last heard for the job that waits longest; 0 if there is none. */
  get leaseAgeMs(): number {
    const now = this.#clock.monotonic();
    const ages = [...this.#jobs.values()].map(({ job, until }) => now - (until + MARGIN_MS - job.leaseMs));
    return Math.max(0, ...ages);
  }
}
