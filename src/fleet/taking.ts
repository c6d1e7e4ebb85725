/** Jobs that this agent comes to own, and goes on to own: as many as are its share. */
import type { JobId } from '../job.ts';
import { countOf } from '../numbers.ts';
import type { TakenJob } from './claims.ts';
import type { Following } from './following.ts';
import type { Moment } from './held-jobs.ts';
import type { JoinedContext } from './member-context.ts';
import type { Standing } from './register.ts';
import { sharesOf } from './share.ts';

export interface TakingOptions
  extends Pick<JoinedContext, 'clock' | 'handover' | 'held' | 'joined' | 'log' | 'member'> {
  readonly following: Following;
}

/** Taken at once: their rows are here within about a second. */
export const MOST_TAKEN = 50;
/** A job that nobody has taken for so long is taken by whoever has room, whatever its share is. */
const WAITING_MS = 4_000;
/** A lease is made anew when so much of its time is over, with a jitter of the rest. */
const RENEW_AT = 0.95;

export class Taking {
  readonly #options: TakingOptions;
  /** Taken, and not followed yet. */
  readonly #taken = new Map<JobId, TakenJob>();
  takeovers = 0;

  constructor(options: TakingOptions) {
    this.#options = options;
  }

  /** Goes on with what the process before this one owned. */
  async reclaim(): Promise<void> {
    const sentAt = this.#options.held.moment();
    this.#hold(await this.#options.joined.claims.reclaim(), sentAt);
  }

  /** As many as are this agent's share; more, if they wait for long. How many it took. */
  async take(standing: Standing | undefined): Promise<number> {
    const { held, joined, member, log } = this.#options;
    if (standing === undefined) return 0;
    const share = sharesOf(standing.jobs, standing.agents).get(member.name) ?? 0;
    const waitsLong = standing.waiting > 0 && standing.waitingMs > WAITING_MS;
    const most = Math.min(MOST_TAKEN, (waitsLong ? member.mostJobs : share) - held.size);
    if (most <= 0) return 0;
    const sentAt = held.moment();
    const taken = await joined.claims.take(most);
    if (taken.length === 0) return 0;
    this.#hold(taken, sentAt);
    const takeovers = taken.filter(({ isTakeover }) => isTakeover).length;
    this.takeovers += takeovers;
    const others = takeovers === 0 ? '' : `, ${takeovers} of them from agents that are silent`;
    log.info({ jobs: taken.length, takeovers }, `took ${countOf(taken.length, 'job')}${others}`);
    return taken.length;
  }

  /** Brings the rows of what was taken here; those whose rows are here by now. */
  async bring(): Promise<readonly TakenJob[]> {
    const { handover, following } = this.#options;
    if (this.#taken.size === 0) return [];
    const jobs = [...this.#taken.values()].slice(0, MOST_TAKEN);
    await following.left(jobs);
    await handover.bring(jobs);
    return jobs;
  }

  /** What was brought is followed, as far as it is still owned. */
  follow(brought: readonly TakenJob[]): void {
    const { held, following } = this.#options;
    const owned = brought.filter((job) => held.get(job.jobId) === job);
    for (const { jobId } of owned) this.forget(jobId);
    if (owned.length > 0) following.follow(owned);
  }

  /** It is not owned any more, or followed. */
  forget(jobId: JobId): void {
    this.#taken.delete(jobId);
  }

  /** Owns jobs anew whose time is nearly over, which is after a day. */
  async renew(): Promise<void> {
    const { held, joined, clock } = this.#options;
    for (const job of held.dueForRenewal()) {
      if (held.stateOf(job.jobId) !== 'following') continue;
      const sentAt = held.moment();
      const claim = await joined.claims.renew(job);
      held.renew(
        { ...job, id: claim.id, retryCount: claim.retryCount },
        sentAt,
        clock.monotonic() + renewalOf(claim.expiresMs),
      );
    }
  }

  #hold(taken: readonly TakenJob[], sentAt: Moment): void {
    const { held, clock } = this.#options;
    for (const job of taken) {
      held.add(job, sentAt, clock.monotonic() + renewalOf(job.expiresMs));
      this.#taken.set(job.jobId, job);
    }
  }
}

const renewalOf = (expiresMs: number) => expiresMs * (RENEW_AT - 0.05 * Math.random());
