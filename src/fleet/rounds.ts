/** What an agent of a fleet does again and again for the jobs it owns, and for those it takes and gives. */
import type { Follower } from '../agent/ownership.ts';
import type { Log } from '../agent/ports.ts';
import { asJobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import { countOf } from '../numbers.ts';
import type { LiveFileRow, WatchOrder } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../system/clock.ts';
import type { TakenJob } from './claims.ts';
import { Fulfilment, type Settled } from './fulfilment.ts';
import type { Handover } from './handover.ts';
import type { HeldJob, HeldJobs, Moment } from './held-jobs.ts';
import type { Joined } from './joined.ts';
import { DONE } from './orders.ts';
import type { Member, Standing } from './register.ts';
import { excessOf, sharesOf } from './share.ts';
import type { Sql } from './sql.ts';
import { Upkeep } from './upkeep.ts';

export interface RoundsOptions {
  readonly store: Store;
  readonly log: Log;
  readonly clock: Clock;
  readonly mirror: string;
  readonly held: HeldJobs;
  readonly joined: Joined;
  readonly handover: Handover;
  readonly member: Member;
  readonly endTransfer: (jobId: JobId) => Promise<void>;
}

export interface RoundOptions {
  readonly standing: Standing | undefined;
  readonly isDraining: boolean;
}

/** Taken at once: their rows are here within about a second. */
const MOST_TAKEN = 50;
const MOST_GIVEN = 20;
const MOST_ORDERS = 500;
/** A job that nobody has taken for so long is taken by whoever has room, whatever its share is. */
const WAITING_MS = 4_000;
const WRITE_EVERY_MS = 2_000;
/** A lease is made anew when so much of its time is over, with a jitter of the rest. */
const RENEW_AT = 0.95;

/** Within a transaction: an order came meanwhile. */
class Wanted extends Error {}

export class Rounds {
  readonly #options: RoundsOptions;
  readonly #fulfilment: Fulfilment;
  readonly #upkeep: Upkeep;
  /** Taken, and not brought here yet. */
  readonly #taken = new Map<JobId, TakenJob>();
  /** Jobs that the agent is about to leave alone. */
  readonly #releases = new Map<JobId, Promise<void>>();
  #follower: Follower | undefined;
  #writtenAt = 0;
  /** Given since the others were last heard of. */
  #given = 0;
  #standing: Standing | undefined;
  takeovers = 0;
  lostJobs = 0;

  constructor(options: RoundsOptions) {
    this.#options = options;
    this.#fulfilment = new Fulfilment(options.store, () => options.clock.now());
    this.#upkeep = new Upkeep(options);
  }

  use(follower: Follower | undefined, configured: readonly WatchOrder[]): void {
    this.#follower = follower;
    this.#upkeep.configured = configured;
  }

  /** Goes on with what the process before this one owned. */
  async begin(): Promise<void> {
    const { held, joined, store, handover } = this.#options;
    const sentAt = held.moment();
    this.#hold(await joined.claims.reclaim(), sentAt);
    const open = new Set(store.leases.allOpen().map(({ jobId }) => jobId));
    // What is lent for a job of somebody else is given back first.
    for (const { jobId } of store.jobs.all())
      if (held.get(jobId) === undefined && !open.has(jobId)) handover.forget(jobId);
    await this.#upkeep.begin();
  }

  /** Whether another one is to begin at once: there is more to be taken, or to be ordered. */
  async round({ standing, isDraining }: RoundOptions): Promise<boolean> {
    if (standing !== this.#standing) this.#given = 0;
    this.#standing = standing;
    if (this.#follower === undefined) return false;
    const taken = isDraining ? 0 : await this.#take(standing);
    await this.#bring();
    await this.#fulfil();
    await this.#write();
    await this.#finish();
    if (isDraining) await this.#give(MOST_GIVEN);
    else if (standing !== undefined) await this.#give(Math.min(MOST_GIVEN, this.#excess(standing)));
    await this.#renew();
    const isAllOrdered = await this.#upkeep.round(this.#follower);
    return taken === MOST_TAKEN || !isAllOrdered;
  }

  fence(job: HeldJob, row: LiveFileRow): Promise<boolean> {
    return this.#options.handover.fence(job, row);
  }

  /** What changed of all jobs that are owned is written. */
  async writeAll(): Promise<void> {
    const { held, handover } = this.#options;
    await handover.writeAnd(held.all('following', 'paused'), async () => {});
  }

  /** Jobs whose lease may be over are left alone until there is word of them. */
  pauseUnsure(): void {
    const { held, log } = this.#options;
    const unsure = held.all('following').filter(({ jobId }) => !held.isSure(jobId));
    if (unsure.length === 0) return;
    for (const { jobId } of unsure) {
      held.setState(jobId, 'paused');
      void this.#release(jobId);
    }
    const hint = 'they go on once the database answers, here or with another agent';
    log.error(
      { scope: 'the fleet', jobs: unsure.length, hint },
      `paused ${countOf(unsure.length, 'job')}: their leases may be over`,
    );
  }

  /** Jobs that were paused, and are still owned, go on. */
  resumeSure(): void {
    const { held, log } = this.#options;
    const sure = held.all('paused').filter(({ jobId }) => held.isSure(jobId) && !this.#releases.has(jobId));
    if (sure.length === 0) return;
    this.#follow(sure);
    log.info({ scope: 'the fleet', jobs: sure.length }, `go on with ${countOf(sure.length, 'job')}`);
  }

  /** Jobs are somebody else's: nothing of them stays here. */
  lost(jobs: readonly HeldJob[]): void {
    const { held, log } = this.#options;
    // One that was renewed meanwhile is another job of the queue by now.
    const known = jobs.filter((job) => held.get(job.jobId) === job);
    if (known.length === 0) return;
    for (const { jobId } of known) {
      held.remove(jobId);
      this.#taken.delete(jobId);
      void this.#release(jobId, true);
    }
    this.lostJobs += known.length;
    log.warn(
      { scope: 'the fleet', jobs: known.length, job: known[0]?.jobId },
      `lost ${countOf(known.length, 'job')} to other agents`,
    );
  }

  /** As many as are this agent's share; more, if they wait for long. How many it took. */
  async #take(standing: Standing | undefined): Promise<number> {
    const { held, joined, member, log } = this.#options;
    if (standing === undefined) return 0;
    const share = this.#sharesOf(standing).get(member.name) ?? 0;
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

  #hold(taken: readonly TakenJob[], sentAt: Moment): void {
    const { held, clock } = this.#options;
    for (const job of taken) {
      const renewMs = job.expiresMs * (RENEW_AT - 0.05 * Math.random());
      held.add(job, sentAt, clock.monotonic() + renewMs);
      this.#taken.set(job.jobId, job);
    }
  }

  async #bring(): Promise<void> {
    if (this.#taken.size === 0) return;
    const jobs = [...this.#taken.values()].slice(0, MOST_TAKEN);
    await Promise.all(jobs.map(({ jobId }) => this.#releases.get(jobId)));
    await this.#options.handover.bring(jobs);
  }

  /** Orders lead to changes here, and these are known there, before anybody is told that they are done. */
  async #fulfil(): Promise<void> {
    const { joined, held, handover, member } = this.#options;
    const open = await joined.orders.openOf(member.name, this.#fulfilment.asked, MOST_ORDERS);
    const mine = open.filter(({ jobId }) => ['taken', 'following'].includes(held.stateOf(jobId) ?? ''));
    const settled = [...this.#fulfilment.apply(mine), ...this.#fulfilment.answered()];
    const jobs = [...new Set(settled.map(({ jobId }) => jobId))].flatMap((jobId) => held.get(jobId) ?? []);
    if (jobs.length > 0) await handover.writeAnd(jobs, (sql, owned) => this.#settle(sql, settled, owned));
    this.#fulfilment.forget(settled.filter(({ answer }) => answer !== null));
    for (const job of jobs) handover.noteTaken(job);
    const brought = [...this.#taken.values()].filter((job) => held.get(job.jobId) === job).slice(0, MOST_TAKEN);
    for (const { jobId } of brought) this.#taken.delete(jobId);
    this.#follow(brought);
    if (settled.length > 0) this.#follower?.refresh();
  }

  async #settle(sql: Sql, settled: readonly Settled[], owned: readonly HeldJob[]): Promise<void> {
    const { orders } = this.#options.joined;
    const names = new Set(owned.map(({ jobId }) => jobId));
    const mine = settled.filter(({ jobId }) => names.has(jobId));
    const idsOf = (some: readonly Settled[]) => some.map(({ orderId }) => orderId);
    await orders.settle(sql, idsOf(mine.filter(({ answer }) => answer === DONE)), DONE);
    await orders.settle(sql, idsOf(mine.filter(({ answer }) => answer === null)), null);
    for (const { orderId, answer } of mine)
      if (answer !== DONE && answer !== null) await orders.settle(sql, [orderId], answer);
  }

  #follow(jobs: readonly HeldJob[]): void {
    const { held } = this.#options;
    for (const { jobId } of jobs) held.setState(jobId, 'following');
    this.#follower?.take(jobs.map(({ jobId }) => jobId));
  }

  async #write(): Promise<void> {
    const { held, handover, clock } = this.#options;
    if (clock.monotonic() - this.#writtenAt < WRITE_EVERY_MS) return;
    this.#writtenAt = clock.monotonic();
    while (await handover.write(held.all('following')));
  }

  /** Jobs for which everything is done are nobody's. */
  async #finish(): Promise<void> {
    const { held, store, joined } = this.#options;
    const states = store.jobs.states();
    const open = new Set(store.leases.allOpen().map(({ jobId }) => jobId));
    const isOver = ({ jobId }: HeldJob) => {
      const state = states.get(jobId);
      return state !== 'watched' && state !== 'ending' && !open.has(jobId) && !this.#fulfilment.isAsked(jobId);
    };
    for (const job of held.all('following').filter(isOver).slice(0, MOST_GIVEN)) {
      await this.#end([job], 'done', async (sql) => {
        if (await joined.orders.hasOpen(sql, job.jobId)) throw new Wanted();
      }).catch((error: unknown) => {
        if (!(error instanceof Wanted)) throw error;
      });
    }
  }

  /** Gives up to so many jobs back, for others to take them at once. */
  async #give(most: number): Promise<void> {
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
    const { held, joined, handover, endTransfer } = this.#options;
    const { claims, orders } = joined;
    // The agent that stops may still write: what it has stays.
    if (this.#follower === undefined) return [];
    for (const { jobId } of jobs) held.setState(jobId, 'leaving');
    await Promise.all(jobs.map(({ jobId }) => this.#release(jobId)));
    await Promise.allSettled(jobs.map(({ jobId }) => endTransfer(jobId)));
    try {
      const ended = await handover.writeAnd(jobs, async (sql, owned) => {
        await check(sql);
        await claims.end(sql, owned, how);
        await orders.notify(sql);
      });
      for (const { jobId } of ended) {
        held.remove(jobId);
        this.#taken.delete(jobId);
        this.#fulfilment.forgetJob(jobId);
        handover.forget(jobId);
      }
      return ended;
    } catch (thrown) {
      // It is not known whether they are still owned; the next heartbeat says so.
      for (const { jobId } of jobs) if (held.stateOf(jobId) === 'leaving') held.setState(jobId, 'paused');
      throw thrown instanceof Wanted ? thrown : asJobtailError(thrown);
    }
  }

  async #renew(): Promise<void> {
    const { held, joined, clock } = this.#options;
    for (const job of held.dueForRenewal()) {
      if (held.stateOf(job.jobId) !== 'following') continue;
      const sentAt = held.moment();
      const claim = await joined.claims.renew(job);
      const renewAt = clock.monotonic() + claim.expiresMs * (RENEW_AT - 0.05 * Math.random());
      held.renew({ ...job, id: claim.id, retryCount: claim.retryCount }, sentAt, renewAt);
    }
  }

  #excess(standing: Standing): number {
    const { held, member } = this.#options;
    const shares = this.#sharesOf(standing);
    const room = standing.agents
      .filter(({ name }) => name !== member.name)
      .reduce((sum, { name, jobs }) => sum + Math.max(0, (shares.get(name) ?? 0) - jobs), 0);
    return excessOf(held.size, shares.get(member.name) ?? 0, room - this.#given);
  }

  #sharesOf({ jobs, agents }: Standing): Map<string, number> {
    return sharesOf(jobs, agents);
  }

  /** The agent leaves a job alone; with `isLost`, nothing of it stays then. */
  #release(jobId: JobId, isLost = false): Promise<void> {
    const { handover, endTransfer } = this.#options;
    const follower = this.#follower;
    const before = this.#releases.get(jobId) ?? Promise.resolve();
    const released = before
      .then(() => follower?.release(jobId))
      .then(async () => {
        if (!isLost) return;
        this.#fulfilment.forgetJob(jobId);
        await endTransfer(jobId).catch(() => {});
        handover.forget(jobId);
      })
      .finally(() => {
        if (this.#releases.get(jobId) === released) this.#releases.delete(jobId);
      });
    this.#releases.set(jobId, released);
    return released;
  }
}
