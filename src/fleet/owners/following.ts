/** Reports to the agent which jobs it must follow, and which ones another agent owns or may own. */
import type { Follower } from '../../agent/ownership.ts';
import type { Log } from '../../agent/ports/host.ts';
import { asJobtailError, type JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import type { WatchRequest } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import type { Clock } from '../../system/clock.ts';
import { idsOf, type LeasedJob, type Member } from '../agents/agents.ts';
import type { Joined } from '../joined.ts';
import type { Handover } from '../rows/handover.ts';
import type { LeasedJobs } from './leased-jobs.ts';

export interface AttachedAgent {
  /** Undefined while the agent stops or restarts. */
  follower: Follower | undefined;
  configured: readonly WatchRequest[];
  /** The jobs with notifications that are not made or not delivered yet. */
  unsent: () => ReadonlySet<JobId>;
}

/** What is of the agent itself, whatever fleet it is in. */
export interface OwnParts {
  readonly store: Store;
  readonly log: Log;
  readonly clock: Clock;
  /** Id of the mirror directory: the same for agents that see the same files. */
  readonly mirror: string;
  /** Releases the transfer grants of a job, if that is possible at once. */
  readonly endTransfer: (jobId: JobId) => Promise<void>;
}

export interface FleetContext extends OwnParts {
  readonly attached: AttachedAgent;
  readonly leased: LeasedJobs;
  readonly joined: Joined;
  readonly handover: Handover;
  readonly member: Member;
  /** Called with failures outside of a round. */
  readonly onFailure: (error: JobtailError) => void;
}

export class Following {
  readonly #membership: FleetContext;
  readonly #onLost: (jobId: JobId) => void;
  /** Jobs that the agent is about to stop following, or to forget. */
  readonly #leaving = new Map<JobId, Promise<void>>();
  lostJobs = 0;

  constructor(membership: FleetContext, onLost: (jobId: JobId) => void) {
    this.#membership = membership;
    this.#onLost = onLost;
  }

  follow(jobs: readonly LeasedJob[]): void {
    const { leased, attached } = this.#membership;
    leased.move(jobs, 'follow');
    attached.follower?.take(idsOf(jobs));
  }

  leave(jobs: readonly LeasedJob[]): Promise<void> {
    const { follower } = this.#membership.attached;
    return this.#during(idsOf(jobs), async () => {
      await Promise.all(jobs.map(({ jobId }) => follower?.release(jobId)));
    });
  }

  async left(jobs: readonly LeasedJob[]): Promise<void> {
    await Promise.all(jobs.map(({ jobId }) => this.#leaving.get(jobId)));
  }

  /** Pauses the jobs whose lease may have expired, until the database answers. */
  pauseIfExpired(): void {
    const { leased, log } = this.#membership;
    const expired = leased.isValid ? [] : leased.all('following');
    if (expired.length === 0) return;
    leased.move(expired, 'pause');
    this.#unawaited(this.leave(expired));
    const hint = 'check the database and the network';
    log.error({ scope: 'the fleet', jobs: expired.length, hint }, 'jobs paused, lease possibly expired');
  }

  /** `own`: the jobs that the database has for this agent; a release whose response was lost may have ended others. */
  resumeIfValid(own: readonly LeasedJob[]): void {
    const { leased, log } = this.#membership;
    const attempts = new Map(own.map(({ jobId, attempt }) => [jobId, attempt]));
    const isOwn = ({ jobId, attempt }: LeasedJob) => attempts.get(jobId) === attempt && !this.#leaving.has(jobId);
    const resumed = leased.isValid ? leased.all('paused').filter(isOwn) : [];
    if (resumed.length === 0) return;
    this.follow(resumed);
    log.info({ scope: 'the fleet', jobs: resumed.length }, 'jobs resumed');
  }

  lost(jobs: readonly LeasedJob[]): void {
    const { leased, log } = this.#membership;
    // A job that was acquired again in the meantime has another fencing token.
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

  /** Forgets jobs of the store that this agent does not own: their grants were open, or it failed before. */
  forgetOthers(stored: readonly JobId[]): void {
    const { leased, handover } = this.#membership;
    const others = stored.filter((jobId) => leased.get(jobId) === undefined && !this.#leaving.has(jobId));
    // The first failure was logged; the next round tries again.
    if (others.length > 0) this.#during(others, () => handover.forgetAll(others)).catch(() => {});
  }

  #forget(jobs: readonly LeasedJob[]): Promise<void> {
    const { handover, endTransfer } = this.#membership;
    const left = this.leave(jobs);
    return this.#during(idsOf(jobs), async () => {
      await left;
      await Promise.allSettled(jobs.map(({ jobId }) => endTransfer(jobId)));
      await handover.forgetAll(idsOf(jobs));
    });
  }

  /** Runs `work` after the agent stopped following these jobs. */
  #during(jobs: readonly JobId[], work: () => Promise<void>): Promise<void> {
    const before = jobs.map((jobId) => this.#leaving.get(jobId));
    const done = Promise.allSettled(before)
      .then(work)
      .finally(() => {
        for (const jobId of jobs) if (this.#leaving.get(jobId) === done) this.#leaving.delete(jobId);
      });
    for (const jobId of jobs) this.#leaving.set(jobId, done);
    return done;
  }

  #unawaited(work: Promise<void>): void {
    work.catch((thrown: unknown) => this.#membership.onFailure(asJobtailError(thrown)));
  }
}
