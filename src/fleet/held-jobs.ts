/**
 * The jobs that this agent owns, and until when it may write for them without having heard from the database: the time
 * before the heartbeat was sent that renewed its lease last, plus the lease, less a margin. The database gives its jobs to
 * another agent at the earliest a whole lease after it received that heartbeat.
 *
 * By the monotonic clock and by the wall clock, whichever is over first: the one stands still while the machine sleeps,
 * the other may be set back.
 */
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

export interface HeldJob {
  readonly jobId: JobId;
  /** The fencing token: grows with each owner of the job. */
  readonly attempt: number;
}

interface Entry {
  readonly job: HeldJob;
  state: HeldState;
}

/** A moment, by both clocks. */
export interface Moment {
  readonly monotonic: number;
  readonly wall: number;
}

export class HeldJobs {
  readonly #clock: Pick<Clock, 'monotonic' | 'now'>;
  readonly #leaseMs: number;
  readonly #jobs = new Map<JobId, Entry>();
  /** When the last heartbeat that went through was sent. */
  #heard: Moment = { monotonic: Number.NEGATIVE_INFINITY, wall: Number.NEGATIVE_INFINITY };
  /** Writes that were refused because the lease was over. */
  refused = 0;

  constructor(clock: Pick<Clock, 'monotonic' | 'now'>, leaseMs: number) {
    this.#clock = clock;
    this.#leaseMs = leaseMs;
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

  add(job: HeldJob): void {
    this.#jobs.set(job.jobId, { job, state: 'taken' });
  }

  setState(jobId: JobId, state: HeldState): void {
    const entry = this.#jobs.get(jobId);
    if (entry !== undefined) entry.state = state;
  }

  remove(jobId: JobId): void {
    this.#jobs.delete(jobId);
  }

  /** The database renewed the lease by a call that was sent at `sentAt`. */
  prolong({ monotonic, wall }: Moment): void {
    this.#heard = { monotonic: Math.max(this.#heard.monotonic, monotonic), wall };
  }

  /** Whether this agent may write for its jobs. */
  get isSure(): boolean {
    const { monotonic, wall } = this.#heard;
    const forMs = this.#leaseMs - MARGIN_MS;
    return this.#clock.monotonic() < monotonic + forMs && this.#clock.now() < wall + forMs;
  }

  /** @throws JobtailError superseded */
  require(jobId: JobId): void {
    // What is still under way for one that was taken anew began under an earlier lease.
    const isOwned = this.#jobs.has(jobId) && this.stateOf(jobId) !== 'taken';
    if (isOwned && this.isSure) return;
    this.refused += 1;
    const why = isOwned ? 'its lease may be over, for the database was not heard' : 'it is not owned';
    throw new JobtailError('superseded', `job ${jobId} is not written for: ${why}`, {
      hint: 'another agent of the fleet goes on with it, or this one, once the database says so',
    });
  }

  /** Milliseconds since the lease was renewed last; 0 while there are no jobs. */
  get leaseAgeMs(): number {
    return this.#jobs.size === 0 ? 0 : Math.max(0, this.#clock.monotonic() - this.#heard.monotonic);
  }
}
