/**
 * Passes on to the agent which jobs to follow, because it owns them, and which to leave, because another agent owns
 * them, or may own them.
 */
import type { Follower } from '../agent/ownership.ts';
import type { Log } from '../agent/ports.ts';
import { asJobtailError, type JobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import type { WatchOrder } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../system/clock.ts';
import type { Handover } from './handover.ts';
import type { Joined } from './joined.ts';
import type { LeasedJobs } from './lease.ts';
import { idsOf, type LeasedJob, type Member } from './register.ts';

/** The agent of this process, and the jobs that its configuration names. */
export interface Attached {
  /** Undefined while the agent stops, perhaps for a moment. */
  follower: Follower | undefined;
  configured: readonly WatchOrder[];
}

/** What the parts of one agent of a fleet share. */
export interface Membership {
  readonly store: Store;
  readonly log: Log;
  readonly clock: Clock;
  /** Of the mirror directory: agents that have the same one see the same files. */
  readonly mirror: string;
  /** Releases the grants of a job, if that is possible at once. */
  readonly endTransfer: (jobId: JobId) => Promise<void>;
  readonly attached: Attached;
  readonly leased: LeasedJobs;
  readonly joined: Joined;
  readonly handover: Handover;
  readonly member: Member;
  /** Called with what fails beside a round. */
  readonly onFailure: (error: JobtailError) => void;
}

export class Following {
  readonly #membership: Membership;
  /** Called with each job that another agent owns by now. */
  readonly #onLost: (jobId: JobId) => void;
  /** Jobs that the agent is about to leave alone. */
  readonly #leaving = new Map<JobId, Promise<void>>();
  lostJobs = 0;

  constructor(membership: Membership, onLost: (jobId: JobId) => void) {
    this.#membership = membership;
    this.#onLost = onLost;
  }

  follow(jobs: readonly LeasedJob[]): void {
    const { leased, attached } = this.#membership;
    leased.move(jobs, 'follow');
    attached.follower?.take(idsOf(jobs));
  }

  /** Resolves when the agent leaves these alone. */
  leave(jobs: readonly LeasedJob[]): Promise<void> {
    const { follower } = this.#membership.attached;
    return this.#during(jobs, async () => {
      await Promise.all(jobs.map(({ jobId }) => follower?.release(jobId)));
    });
  }

  /** Resolves when the agent leaves alone what it followed of these before. */
  async left(jobs: readonly LeasedJob[]): Promise<void> {
    await Promise.all(jobs.map(({ jobId }) => this.#leaving.get(jobId)));
  }

  /** Jobs whose lease may be over are left alone until there is word of them. */
  pauseUnsure(): void {
    const { leased, log } = this.#membership;
    const unsure = leased.isSure ? [] : leased.all('following');
    if (unsure.length === 0) return;
    leased.move(unsure, 'pause');
    this.#unawaited(this.leave(unsure));
    const hint = 'check the database and the network';
    log.error({ scope: 'the fleet', jobs: unsure.length, hint }, 'jobs paused, lease possibly expired');
  }

  /** Jobs that were paused, and are still owned, go on. */
  resumeSure(): void {
    const { leased, log } = this.#membership;
    const sure = leased.isSure ? leased.all('paused').filter(({ jobId }) => !this.#leaving.has(jobId)) : [];
    if (sure.length === 0) return;
    this.follow(sure);
    log.info({ scope: 'the fleet', jobs: sure.length }, 'jobs resumed');
  }

  /** Leaves jobs that another agent owns: nothing of them stays here. */
  lost(jobs: readonly LeasedJob[]): void {
    const { leased, log } = this.#membership;
    // One that was taken anew meanwhile is another attempt by now.
    const known = jobs.filter((job) => leased.get(job.jobId) === job);
    if (known.length === 0) return;
    for (const { jobId } of known) {
      leased.remove(jobId);
      this.#onLost(jobId);
    }
    this.#unawaited(this.#forget(known));
    this.lostJobs += known.length;
    log.warn({ scope: 'the fleet', jobs: known.length, job: known[0]?.jobId }, 'jobs lost to other agents');
  }

  #forget(jobs: readonly LeasedJob[]): Promise<void> {
    const { handover, endTransfer } = this.#membership;
    const left = this.leave(jobs);
    return this.#during(jobs, async () => {
      await left;
      await Promise.allSettled(jobs.map(({ jobId }) => endTransfer(jobId)));
      await handover.forgetAll(idsOf(jobs));
    });
  }

  /** Does `work` when what is under way of these jobs has ended, however it did. */
  #during(jobs: readonly LeasedJob[], work: () => Promise<void>): Promise<void> {
    const before = jobs.map(({ jobId }) => this.#leaving.get(jobId));
    const done = Promise.allSettled(before)
      .then(work)
      .finally(() => {
        for (const { jobId } of jobs) if (this.#leaving.get(jobId) === done) this.#leaving.delete(jobId);
      });
    for (const { jobId } of jobs) this.#leaving.set(jobId, done);
    return done;
  }

  #unawaited(work: Promise<void>): void {
    work.catch((thrown: unknown) => this.#membership.onFailure(asJobtailError(thrown)));
  }
}
