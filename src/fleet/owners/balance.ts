/** How jobs are spread over the agents: the share of each, and which jobs this one acquires or releases. */
import { eachAlone } from '../../each-alone.ts';
import { asJobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import { DAY_MS } from '../../system/clock.ts';
import { type FleetSummary, idsOf, type LeasedJob, type Taker } from '../agents/agents.ts';
import type { Readiness } from '../agents/readiness.ts';
import type { Execution } from '../commands/commands.ts';
import type { End, TakenJob } from './claims.ts';
import type { FleetContext, Following } from './following.ts';

/** The share of each agent by its name: equal up to each one's maximum. No job moves without need. */
export function sharesOf(jobs: number, agents: readonly Taker[]): Map<string, number> {
  const shares = new Map<string, number>();
  let left = jobs;
  const maxOf = ({ mostJobs }: { readonly mostJobs: number }) => Math.min(mostJobs, jobs);
  const bySize = [...agents].sort((a, b) => maxOf(a) - maxOf(b) || b.jobs - a.jobs || (a.name < b.name ? -1 : 1));
  for (const [index, { name, mostJobs }] of bySize.entries()) {
    const share = Math.min(mostJobs, Math.ceil(left / (bySize.length - index)));
    shares.set(name, share);
    left -= share;
  }
  return shares;
}

/** How many jobs above its share an agent releases now: a part of them, so that the move takes half a minute. */
export function excessOf(own: number, share: number, room: number): number {
  return Math.max(0, Math.ceil(Math.min(own - share, room) / 10));
}

/** Acquired at once: their rows arrive here within about a second. */
export const MAX_TAKEN = 50;

export class Taking {
  readonly #membership: FleetContext;
  readonly #following: Following;
  readonly #readiness: Readiness;
  readonly #reclaimFrom: number;
  takeovers = 0;

  constructor(membership: FleetContext, following: Following, readiness: Readiness) {
    this.#membership = membership;
    this.#following = following;
    this.#readiness = readiness;
    this.#reclaimFrom = membership.clock.monotonic() + membership.member.leaseMs;
  }

  /** Continues with the jobs of the process before. One that the state lacks waits for a lease: it may be another's. */
  async begin(): Promise<void> {
    const here = new Map(this.#membership.store.fleetLeases.all().map(({ jobId, attempt }) => [jobId, attempt]));
    await this.#reclaim(({ jobId, attempt }) => here.get(jobId) === attempt);
  }

  async #reclaim(isMeant: (job: TakenJob) => boolean): Promise<void> {
    const { leased, joined } = this.#membership;
    const owned = (await joined.claims.owned()).filter(({ jobId }) => leased.get(jobId) === undefined);
    leased.add(...owned.filter(isMeant));
  }

  /** Acquires jobs up to this agent's share. Returns how many. */
  async take(summary: FleetSummary | undefined): Promise<number> {
    const { leased, joined, member, log, clock } = this.#membership;
    if (summary === undefined) return 0;
    // Of a call whose response was lost.
    const isUnknown = summary.own.some(({ jobId }) => leased.get(jobId) === undefined);
    if (isUnknown && clock.monotonic() >= this.#reclaimFrom) await this.#reclaim(() => true);
    const share = sharesOf(summary.jobs, summary.agents).get(member.name) ?? 0;
    const max = Math.min(MAX_TAKEN, share - leased.size);
    if (summary.waiting === 0 || max <= 0) return 0;
    const taken = await joined.claims.take(max);
    if (taken.length === 0) return 0;
    leased.add(...taken);
    this.#readiness.acquired();
    const takeovers = taken.filter(({ isTakeover }) => isTakeover).length;
    this.takeovers += takeovers;
    log.info({ jobs: taken.length, takeovers, agent: member.name }, 'jobs acquired');
    return taken.length;
  }

  /** Copies the rows of acquired jobs into the store. Returns the jobs whose rows are here. */
  async bring(): Promise<readonly TakenJob[]> {
    const { leased, handover } = this.#membership;
    const jobs = leased.all('taken').slice(0, MAX_TAKEN);
    if (jobs.length === 0) return [];
    await this.#following.left(jobs);
    try {
      await handover.bring(jobs);
      this.#readiness.stored();
      return jobs;
    } catch (thrown) {
      const error = asJobtailError(thrown);
      if (error.code === 'fleet') throw error;
      return await this.#bringEach(jobs);
    }
  }

  /** A job whose rows cannot be copied is logged, and tried again after the others. */
  async #bringEach(jobs: readonly TakenJob[]): Promise<readonly TakenJob[]> {
    const { leased, handover, onFailure } = this.#membership;
    const failed = await eachAlone(jobs, (job) => handover.bring([job]));
    for (const { thing: job, error } of failed) {
      if (!this.#readiness.failed(error)) onFailure(error);
      leased.requeue(job);
    }
    return jobs.filter((job) => !failed.some(({ thing }) => thing === job));
  }

  follow(brought: readonly TakenJob[]): void {
    const owned = brought.filter((job) => this.#membership.leased.get(job.jobId) === job);
    if (owned.length > 0) this.#following.follow(owned);
  }
}

export const MAX_GIVEN = 20;
/** A delivery is given up after so long (docs/notify.md). */
const MAX_WAITING_MS = DAY_MS;

/** Releases jobs: those above this agent's share, and those without remaining work. */
export class Giving {
  readonly #membership: FleetContext;
  readonly #following: Following;
  readonly #execution: Execution;
  /** The last summary of the fleet, and how many jobs were released since. */
  #summary: FleetSummary | undefined;
  #given = 0;
  /** Since when jobs that are over wait for their notifications. */
  #waitingSince: ReadonlyMap<JobId, number> = new Map();

  constructor(membership: FleetContext, following: Following, execution: Execution) {
    this.#membership = membership;
    this.#following = following;
    this.#execution = execution;
  }

  async finish(): Promise<void> {
    const { leased, store } = this.#membership;
    const states = store.jobs.states();
    // Grants of a job that another agent owns are released first.
    const open = new Set(store.leases.allOpen().map(({ jobId }) => jobId));
    this.#following.forgetOthers([...states.keys()].filter((jobId) => !open.has(jobId)));
    const isOver = ({ jobId }: LeasedJob) => {
      const state = states.get(jobId);
      return state !== 'watched' && state !== 'ending' && !open.has(jobId) && !this.#execution.isAsked(jobId);
    };
    const over = leased.all('following').filter(isOver);
    await this.#end(this.#sent(over).slice(0, MAX_GIVEN), 'done');
  }

  /** Those without a waiting notification: only the owner of a job delivers it. */
  #sent(over: readonly LeasedJob[]): LeasedJob[] {
    const { attached, clock } = this.#membership;
    const now = clock.monotonic();
    const unsent = over.length === 0 ? new Set() : attached.unsent();
    const waiting = over.filter(({ jobId }) => unsent.has(jobId));
    this.#waitingSince = new Map(waiting.map(({ jobId }) => [jobId, this.#waitingSince.get(jobId) ?? now]));
    return over.filter(
      ({ jobId }) => now - (this.#waitingSince.get(jobId) ?? Number.NEGATIVE_INFINITY) >= MAX_WAITING_MS,
    );
  }

  async giveExcess(summary: FleetSummary): Promise<void> {
    const { leased, member } = this.#membership;
    if (summary !== this.#summary) this.#given = 0;
    this.#summary = summary;
    const shares = sharesOf(summary.jobs, summary.agents);
    const room = summary.agents
      .filter(({ name }) => name !== member.name)
      .reduce((sum, { name, jobs }) => sum + Math.max(0, (shares.get(name) ?? 0) - jobs), 0);
    await this.give(Math.min(MAX_GIVEN, excessOf(leased.size, shares.get(member.name) ?? 0, room - this.#given)));
  }

  /** Releases up to `max` jobs, for other agents to acquire at once. */
  async give(max: number): Promise<void> {
    const { leased, log } = this.#membership;
    if (max === 0) return;
    // Those that are followed go first.
    const jobs = [...leased.all('taken', 'paused'), ...leased.all('following')].slice(-max);
    const given = await this.#end(jobs, 'handed-over');
    if (given.length === 0) return;
    this.#given += given.length;
    log.info({ jobs: given.length }, 'jobs handed off');
  }

  /** The agent stops following the jobs; then one transaction writes their rows and ends the ownership. */
  async #end(jobs: readonly LeasedJob[], how: End): Promise<readonly LeasedJob[]> {
    const { leased, joined, handover, attached, endTransfer } = this.#membership;
    const { claims, commands } = joined;
    // The agent stops, and may still write: it keeps its jobs.
    if (attached.follower === undefined || jobs.length === 0) return [];
    leased.move(jobs, 'give');
    try {
      await this.#following.leave(jobs);
      await Promise.allSettled(jobs.map(({ jobId }) => endTransfer(jobId)));
      let ended: readonly LeasedJob[] = [];
      const owned = await handover.writeAnd(jobs, async (sql, fenced) => {
        // A command that arrived in the meantime is executed first.
        ended = how === 'done' ? await commands.withoutOpen(sql, fenced) : fenced;
        await claims.end(sql, ended, how);
        await commands.notify(sql);
      });
      leased.move(
        owned.filter((job) => !ended.includes(job)),
        'keep',
      );
      for (const { jobId } of ended) {
        leased.remove(jobId);
        this.#execution.forgetJob(jobId);
      }
      await handover.forgetAll(idsOf(ended));
      return ended;
    } catch (thrown) {
      leased.move(jobs, 'keep');
      throw asJobtailError(thrown);
    }
  }
}
