/** Jobs that this agent gives up: to others, which have fewer than their share, or because nothing is left to be done. */
import { asJobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import { countOf } from '../numbers.ts';
import type { Following } from './following.ts';
import type { HeldJob } from './held-jobs.ts';
import type { JoinedContext } from './member-context.ts';
import type { Standing } from './register.ts';
import { excessOf, sharesOf } from './share.ts';
import type { Sql } from './sql.ts';

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
