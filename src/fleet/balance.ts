/** How the jobs are spread over the agents: the share of each, and what this agent takes and gives to reach its own. */
import { asJobtailError, type JobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import { countOf } from '../numbers.ts';
import type { TakenJob } from './claims.ts';
import type { Following } from './following.ts';
import type { JoinedContext } from './member-context.ts';
import type { HeldJob, Standing, Taker } from './register.ts';
import type { Sql } from './tables.ts';

/**
 * The share of each agent by its name: all have the same, but for those that may not own as many, whose rest the others
 * share. Together they are at least as many as there are jobs, if there is room.
 */
export function sharesOf(jobs: number, agents: readonly Pick<Taker, 'name' | 'mostJobs'>[]): Map<string, number> {
  const shares = new Map<string, number>();
  let left = jobs;
  const bySize = [...agents].sort((a, b) => a.mostJobs - b.mostJobs || (a.name < b.name ? -1 : 1));
  for (const [index, { name, mostJobs }] of bySize.entries()) {
    const share = Math.min(mostJobs, Math.ceil(left / (bySize.length - index)));
    shares.set(name, share);
    left -= share;
  }
  return shares;
}

/**
 * How many of its jobs an agent gives back now, so that others that have fewer than their share may take them: a part of
 * what is above its own share, so that it takes half a minute and nobody is flooded.
 */
export function excessOf(own: number, share: number, room: number): number {
  const excess = Math.min(own - share, room);
  return excess <= 0 ? 0 : Math.max(1, Math.ceil(excess / 10));
}

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

/** Jobs that this agent comes to own, and goes on to own: as many as are its share. */
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

export interface GivingOptions extends Omit<JoinedContext, 'clock' | 'mirror'> {
  readonly following: Following;
  /** Whether somebody waits for an answer about a job. */
  readonly isAsked: (jobId: JobId) => boolean;
  /** Called with each job that is not owned any more. */
  readonly onEnded: (jobId: JobId) => void;
}

export const MOST_GIVEN = 20;

/** Within a transaction: an order came meanwhile. */
class Wanted extends Error {}

/** Jobs that this agent gives up: to others, which have fewer than their share, or because nothing is left to be done. */
export class Giving {
  readonly #options: GivingOptions;
  /** What the others were last heard of, and how many were given since. */
  #standing: Standing | undefined;
  #given = 0;

  constructor(options: GivingOptions) {
    this.#options = options;
  }

  /** Jobs for which everything is done are nobody's. */
  async finish(): Promise<void> {
    const { held, store, joined, isAsked } = this.#options;
    const states = store.jobs.states();
    const open = new Set(store.leases.allOpen().map(({ jobId }) => jobId));
    const isOver = ({ jobId }: HeldJob) => {
      const state = states.get(jobId);
      return state !== 'watched' && state !== 'ending' && !open.has(jobId) && !isAsked(jobId);
    };
    for (const job of held.all('following').filter(isOver).slice(0, MOST_GIVEN)) {
      await this.#end([job], 'done', async (sql) => {
        if (await joined.orders.hasOpen(sql, job.jobId)) throw new Wanted();
      }).catch((error: unknown) => {
        if (!(error instanceof Wanted)) throw error;
      });
    }
  }

  /** Gives back what is more than this agent's share, some of it. */
  async giveExcess(standing: Standing): Promise<void> {
    const { held, member } = this.#options;
    if (standing !== this.#standing) this.#given = 0;
    this.#standing = standing;
    const shares = sharesOf(standing.jobs, standing.agents);
    const room = standing.agents
      .filter(({ name }) => name !== member.name)
      .reduce((sum, { name, jobs }) => sum + Math.max(0, (shares.get(name) ?? 0) - jobs), 0);
    await this.give(Math.min(MOST_GIVEN, excessOf(held.size, shares.get(member.name) ?? 0, room - this.#given)));
  }

  /** Gives up to so many jobs back, for others to take them at once. */
  async give(most: number): Promise<void> {
    const { held, log } = this.#options;
    if (most === 0) return;
    const jobs = held.all('following').slice(-most);
    const stuck = held.all('taken', 'paused').slice(0, most - jobs.length);
    if (jobs.length + stuck.length === 0) return;
    const given = await this.#end([...jobs, ...stuck], 'handed-over', async () => {});
    if (given.length === 0) return;
    this.#given += given.length;
    log.info({ jobs: given.length }, `handed over ${countOf(given.length, 'job')}`);
  }

  /** The agent leaves them alone, their rows are written, and they are not owned any more: the last two at once. */
  async #end(
    jobs: readonly HeldJob[],
    how: 'handed-over' | 'done',
    check: (sql: Sql) => Promise<void>,
  ): Promise<readonly HeldJob[]> {
    const { held, joined, handover, following, endTransfer, onEnded } = this.#options;
    const { claims, orders } = joined;
    // The agent that stops may still write: what it has stays.
    if (following.follower === undefined) return [];
    for (const { jobId } of jobs) held.setState(jobId, 'leaving');
    try {
      await following.leave(jobs);
      await Promise.allSettled(jobs.map(({ jobId }) => endTransfer(jobId)));
      const ended = await handover.writeAnd(jobs, async (sql, owned) => {
        await check(sql);
        await claims.end(sql, owned, how);
        await orders.notify(sql);
      });
      for (const { jobId } of ended) {
        held.remove(jobId);
        onEnded(jobId);
      }
      await handover.forgetAll(ended.map(({ jobId }) => jobId));
      return ended;
    } catch (thrown) {
      // It is not known whether they are still owned; the next heartbeat says so.
      for (const { jobId } of jobs) if (held.stateOf(jobId) === 'leaving') held.setState(jobId, 'paused');
      throw thrown instanceof Wanted ? thrown : asJobtailError(thrown);
    }
  }
}
