/**
 * The jobs that this agent owns, and its lease for them, which the heartbeat renews (`Heartbeat.#renew`).
 *
 * Without a response of the database, the agent may write until its lease ends. The lease starts just before the last
 * successful heartbeat was sent, and lasts `leaseMs` less a margin. The database releases the jobs of the agent `leaseMs`
 * after it received that heartbeat, or later.
 *
 * The lease has ended if one of two clocks shows it. Each alone can be wrong: the monotonic clock stops while the machine
 * sleeps; the wall clock may be set back.
 */
import { JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import type { Clock } from '../../system/clock.ts';
import type { LeasedJob } from '../agents/agents.ts';
import type { TakenJob } from './claims.ts';

/** Time for the write after the check. */
const MARGIN_MS = 1_000;

/**
 * taken: the agent owns the job, but its rows have not arrived. following: the agent follows it. paused: the lease may have expired;
 * the agent waits for the database. leaving: the agent releases it. returning: released before its rows arrived.
 */
type LeasedState = 'taken' | 'following' | 'paused' | 'leaving' | 'returning';

/** give: release. keep: the release failed, or its result is unknown; the next heartbeat shows the owner. */
type LeasedEvent = 'follow' | 'pause' | 'give' | 'keep';

/** Other events change nothing. */
const NEXT: Readonly<Record<LeasedEvent, Readonly<Partial<Record<LeasedState, LeasedState>>>>> = {
  follow: { taken: 'following', paused: 'following' },
  pause: { following: 'paused' },
  give: { taken: 'returning', following: 'leaving', paused: 'leaving' },
  keep: { leaving: 'paused', returning: 'taken' },
};

/** Whether files of a job may be written in a state: before the rows arrive, work of an earlier lease may still run. */
const mayWrite = (state: LeasedState) => state !== 'taken' && state !== 'returning';

interface Moment {
  readonly monotonic: number;
  readonly wall: number;
}

export class LeasedJobs {
  readonly #clock: Clock;
  readonly #leaseMs: number;
  readonly #jobs = new Map<JobId, { readonly job: TakenJob; state: LeasedState }>();
  #renewedAt: Moment = { monotonic: Number.NEGATIVE_INFINITY, wall: Number.NEGATIVE_INFINITY };
  /** Writes that were refused because the lease had expired. */
  refused = 0;

  constructor(clock: Clock, leaseMs: number) {
    this.#clock = clock;
    this.#leaseMs = leaseMs;
  }

  moment(): Moment {
    return { monotonic: this.#clock.monotonic(), wall: this.#clock.now() };
  }

  get size(): number {
    return this.#jobs.size;
  }

  all(...states: readonly LeasedState[]): TakenJob[] {
    const wanted = [...this.#jobs.values()].filter(({ state }) => states.length === 0 || states.includes(state));
    return wanted.map(({ job }) => job);
  }

  get(jobId: JobId): TakenJob | undefined {
    return this.#jobs.get(jobId)?.job;
  }

  stateOf(jobId: JobId): LeasedState | undefined {
    return this.#jobs.get(jobId)?.state;
  }

  add(...jobs: readonly TakenJob[]): void {
    for (const job of jobs) this.#jobs.set(job.jobId, { job, state: 'taken' });
  }

  move(jobs: readonly LeasedJob[], event: LeasedEvent): void {
    for (const { jobId } of jobs) {
      const entry = this.#jobs.get(jobId);
      if (entry !== undefined) entry.state = NEXT[event][entry.state] ?? entry.state;
    }
  }

  /** Moves a job behind the others. */
  requeue(job: LeasedJob): void {
    const entry = this.#jobs.get(job.jobId);
    if (entry?.job !== job) return;
    this.#jobs.delete(job.jobId);
    this.#jobs.set(job.jobId, entry);
  }

  remove(jobId: JobId): void {
    this.#jobs.delete(jobId);
  }

  /** Renews the lease: the argument is when the successful heartbeat was sent. */
  prolong({ monotonic, wall }: Moment): void {
    // A late response to an older heartbeat must not shorten the lease. The wall clock may have been set back.
    this.#renewedAt = { monotonic: Math.max(this.#renewedAt.monotonic, monotonic), wall };
  }

  /** Whether the lease is valid, so that this agent may write. */
  get isValid(): boolean {
    const { monotonic, wall } = this.#renewedAt;
    const forMs = this.#leaseMs - MARGIN_MS;
    return this.#clock.monotonic() < monotonic + forMs && this.#clock.now() < wall + forMs;
  }

  /** @throws JobtailError superseded */
  require(jobId: JobId): void {
    const state = this.stateOf(jobId);
    const isOwned = state !== undefined && mayWrite(state);
    if (isOwned && this.isValid) return;
    this.refused += 1;
    const why = isOwned ? 'lease possibly expired' : 'this agent does not own it';
    throw new JobtailError('superseded', `write refused for job ${jobId}: ${why}`, {
      hint: 'wait: another agent continues the job, or this agent does when the database confirms the lease',
    });
  }

  /** 0 while there are no jobs. */
  get leaseAgeMs(): number {
    return this.#jobs.size === 0 ? 0 : Math.max(0, this.#clock.monotonic() - this.#renewedAt.monotonic);
  }
}
