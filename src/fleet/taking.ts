/** Jobs that this agent comes to own, and goes on to own: as many as are its share. */
import { asJobtailError, type JobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import { countOf } from '../numbers.ts';
import type { TakenJob } from './claims.ts';
import type { Following } from './following.ts';
import type { JoinedContext } from './member-context.ts';
import type { Standing } from './register.ts';
import { sharesOf } from './share.ts';

export interface TakingOptions extends Pick<JoinedContext, 'handover' | 'held' | 'joined' | 'log' | 'member'> {
  readonly following: Following;
  /** Called with what fails of one job, and when the rows of jobs were stored. */
  readonly onFailure: (error: JobtailError) => void;
  readonly onStored: () => void;
}

/** Taken at once: their rows are here within about a second. */
export const MOST_TAKEN = 50;
/** Agents that have room leave a job waiting no longer than that, or are passed over. */
const WAITING_MS = 4_000;

export class Taking {
  readonly #options: TakingOptions;
  /** Taken, and not followed yet. */
  readonly #taken = new Map<JobId, TakenJob>();
  takeovers = 0;
  /** In which agents have room that were passed over since: nothing is given to them by it. */
  passedOver: Standing | undefined;

  constructor(options: TakingOptions) {
    this.#options = options;
  }

  /** Goes on with what it owns by the database: of the process before, or taken by a call whose answer was lost. */
  async reclaim(): Promise<void> {
    const { held, joined } = this.#options;
    this.#hold((await joined.claims.owned()).filter(({ jobId }) => held.get(jobId) === undefined));
  }

  /** As many as are this agent's share, or more if others leave jobs waiting. How many it took. */
  async take(standing: Standing | undefined): Promise<number> {
    const { held, joined, member, log } = this.#options;
    if (standing === undefined) return 0;
    if (standing.own.some(({ jobId }) => held.get(jobId) === undefined)) await this.reclaim();
    if (standing.waiting === 0) return 0;
    const most = Math.min(MOST_TAKEN, await this.#wanted(standing));
    if (most <= 0) return 0;
    const taken = await joined.claims.take(most);
    if (taken.length === 0) return 0;
    this.#hold(taken);
    const takeovers = taken.filter(({ isTakeover }) => isTakeover).length;
    this.takeovers += takeovers;
    const others = takeovers === 0 ? '' : `, ${takeovers} of them from agents that are silent`;
    log.info({ jobs: taken.length, takeovers, agent: member.name }, `took ${countOf(taken.length, 'job')}${others}`);
    return taken.length;
  }

  /** What is missing of its share; beyond it, only what the agents that have room do not take. */
  async #wanted(standing: Standing): Promise<number> {
    const { jobs, agents, waitingMs } = standing;
    const { held, joined, member } = this.#options;
    const shares = sharesOf(jobs, agents);
    const missing = (shares.get(member.name) ?? 0) - held.size;
    const room = (agents.find(({ name }) => name === member.name)?.able ?? 0) - held.size;
    if (missing > 0 || room <= 0 || waitingMs <= WAITING_MS) return missing;
    const idle = agents.filter(({ name, jobs: own }) => name !== member.name && own < (shares.get(name) ?? 0));
    if (idle.some(({ idleMs }) => idleMs <= WAITING_MS)) return 0;
    await joined.register.passOver(idle.map(({ name }) => name));
    this.passedOver = standing;
    return room;
  }

  /** Brings the rows of what was taken here; those whose rows are here by now. */
  async bring(): Promise<readonly TakenJob[]> {
    const { handover, following, onStored } = this.#options;
    if (this.#taken.size === 0) return [];
    const jobs = [...this.#taken.values()].slice(0, MOST_TAKEN);
    await following.left(jobs);
    try {
      await handover.bring(jobs);
      onStored();
      return jobs;
    } catch (thrown) {
      const error = asJobtailError(thrown);
      if (error.code === 'fleet') throw error;
      return await this.#bringEach(jobs);
    }
  }

  /** One whose rows cannot be brought is said, is tried again behind the others, and keeps none of them waiting. */
  async #bringEach(jobs: readonly TakenJob[]): Promise<readonly TakenJob[]> {
    const { handover, onFailure } = this.#options;
    const brought: TakenJob[] = [];
    for (const job of jobs) {
      try {
        await handover.bring([job]);
        brought.push(job);
      } catch (thrown) {
        onFailure(asJobtailError(thrown));
        if (this.#taken.delete(job.jobId)) this.#taken.set(job.jobId, job);
      }
    }
    return brought;
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

  #hold(taken: readonly TakenJob[]): void {
    for (const job of taken) {
      this.#options.held.add(job);
      this.#taken.set(job.jobId, job);
    }
  }
}
