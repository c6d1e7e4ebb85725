/** What an agent of a fleet does again and again: takes and gives jobs, fulfils orders, and writes what changed. */
import type { Follower } from '../agent/ownership.ts';
import type { PassAnswer } from '../agent/pass/job-end.ts';
import type { JobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import type { LiveFileRow, WatchOrder } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import { Giving, MOST_GIVEN, MOST_TAKEN, Taking } from './balance.ts';
import type { OpenOrder } from './border.ts';
import { Following } from './following.ts';
import type { JoinedContext } from './member-context.ts';
import { type Answer, DONE } from './orders.ts';
import type { Readiness } from './readiness.ts';
import type { HeldJob, Standing } from './register.ts';
import type { Sql } from './tables.ts';
import { Upkeep } from './upkeep.ts';

export interface RoundsOptions extends JoinedContext {
  /** Called with what fails beside a round. */
  readonly onFailure: (error: JobtailError) => void;
  readonly readiness: Readiness;
}

export interface RoundOptions {
  readonly standing: Standing | undefined;
  readonly isDraining: boolean;
}

const MOST_ORDERS = 500;
const WRITE_EVERY_MS = 2_000;
/** Orders come with a notification; this is for one that was missed. */
const ORDERS_EVERY_MS = 15_000;

export class Rounds {
  readonly following: Following;
  readonly taking: Taking;
  readonly #options: RoundsOptions;
  readonly #giving: Giving;
  readonly #fulfilment: Fulfilment;
  readonly #upkeep: Upkeep;
  #writtenAt = 0;
  #isNoticed = false;
  #ordersAt = Number.NEGATIVE_INFINITY;

  constructor(options: RoundsOptions) {
    this.#options = options;
    this.#fulfilment = new Fulfilment(options.store, () => options.clock.now());
    this.#upkeep = new Upkeep(options);
    const forget = (jobId: JobId) => {
      this.taking.forget(jobId);
      this.#fulfilment.forgetJob(jobId);
    };
    this.following = new Following({ ...options, onLost: forget });
    const { following } = this;
    const { readiness } = options;
    const onFailure = (error: JobtailError) => {
      if (!readiness.failed(error)) options.onFailure(error);
    };
    this.taking = new Taking({ ...options, following, onFailure, onStored: () => readiness.stored() });
    const isAsked = (jobId: JobId) => this.#fulfilment.isAsked(jobId);
    this.#giving = new Giving({ ...options, following, isAsked, onEnded: forget });
  }

  /** Orders may have been given. */
  noticed(): void {
    this.#isNoticed = true;
    this.#upkeep.noticed();
  }

  use(follower: Follower | undefined, configured: readonly WatchOrder[]): void {
    this.following.follower = follower;
    this.#upkeep.configured = configured;
  }

  /** Goes on with what the process before this one owned. */
  async begin(): Promise<void> {
    const { held, store, handover } = this.#options;
    await this.taking.reclaim();
    const open = new Set(store.leases.allOpen().map(({ jobId }) => jobId));
    // What is lent for a job of somebody else is given back first.
    const others = store.jobs.all().filter(({ jobId }) => held.get(jobId) === undefined && !open.has(jobId));
    await handover.forgetAll(others.map(({ jobId }) => jobId));
    await this.#upkeep.begin();
  }

  /** Whether another one is to begin at once: there is more to be taken, or to be ordered. */
  async round({ standing, isDraining }: RoundOptions): Promise<boolean> {
    const { follower } = this.following;
    if (follower === undefined) return false;
    const taken = isDraining ? 0 : await this.taking.take(standing);
    const brought = await this.taking.bring();
    await this.#fulfil(brought);
    this.taking.follow(brought);
    await this.#write();
    await this.#giving.finish();
    if (isDraining) await this.#giving.give(MOST_GIVEN);
    else if (standing !== undefined && standing !== this.taking.passedOver) await this.#giving.giveExcess(standing);
    const isAllOrdered = await this.#upkeep.round(follower);
    return taken === MOST_TAKEN || !isAllOrdered;
  }

  fence(job: HeldJob, row: LiveFileRow): Promise<boolean> {
    return this.#options.handover.fence(job, row);
  }

  /** What changed of a job is written. */
  async keep(job: HeldJob): Promise<void> {
    while (await this.#options.handover.write([job]));
  }

  /** What changed of all jobs that are owned is written. */
  async writeAll(): Promise<void> {
    const { held, handover } = this.#options;
    await handover.writeAnd(held.all('following', 'paused'), async () => {});
  }

  /** Orders lead to changes here, and these are known there, before anybody is told that they are done. */
  async #fulfil(brought: readonly HeldJob[]): Promise<void> {
    const { joined, held, handover, member, clock } = this.#options;
    const isAsked = this.#fulfilment.asked.length > 0 || this.#isNoticed || brought.length > 0;
    if (!isAsked && clock.monotonic() - this.#ordersAt < ORDERS_EVERY_MS) return;
    [this.#ordersAt, this.#isNoticed] = [clock.monotonic(), false];
    const open = await joined.orders.openOf(member.name, this.#fulfilment.asked, MOST_ORDERS);
    // Of one whose rows are still to come, they would begin anew by it.
    const here = [...held.all('following'), ...brought.filter((job) => held.get(job.jobId) === job)];
    const isHere = new Set(here.map(({ jobId }) => jobId));
    const mine = open.filter(({ jobId }) => isHere.has(jobId));
    // The others are looked at again when their jobs are here: no notification comes for that.
    if (mine.length < open.length) this.#isNoticed = true;
    const settled = [...this.#fulfilment.apply(mine), ...this.#fulfilment.answered()];
    if (settled.length === 0) return;
    const jobs = [...new Set(settled.map(({ jobId }) => jobId))].flatMap((jobId) => held.get(jobId) ?? []);
    if (jobs.length > 0) await handover.writeAnd(jobs, (sql, owned) => this.#settle(sql, settled, owned));
    this.#fulfilment.forget(settled.filter(({ answer }) => answer !== null));
    for (const job of jobs) handover.noteTaken(job);
    this.following.follower?.refresh();
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

  async #write(): Promise<void> {
    const { held, handover, clock } = this.#options;
    if (clock.monotonic() - this.#writtenAt < WRITE_EVERY_MS) return;
    this.#writtenAt = clock.monotonic();
    while (await handover.write(held.all('following')));
  }
}

/** What is known of an order by now; a null answer is still to come. */
export interface Settled {
  readonly jobId: JobId;
  readonly orderId: string;
  readonly answer: Answer | null;
}

interface Asked {
  readonly jobId: JobId;
  /** In the store. */
  readonly requestId: number;
}

/** Orders for the jobs that this agent owns: brought into its store, where the agent finds them, and answered from there. */
export class Fulfilment {
  readonly #store: Store;
  readonly #now: () => number;
  /** Orders for a pass that was asked for in the store, by their ids. */
  readonly #asked = new Map<string, Asked>();

  constructor(store: Store, now: () => number) {
    this.#store = store;
    this.#now = now;
  }

  /** Orders that wait for what was asked for in the store. */
  get asked(): string[] {
    return [...this.#asked.keys()];
  }

  /** Brings orders that are new here into the store; what is to be written of them. */
  apply(orders: readonly OpenOrder[]): Settled[] {
    if (orders.length === 0) return [];
    return this.#store.transaction(() => orders.map((order) => this.#apply(order)));
  }

  /** Orders whose answer has come. */
  answered(): Settled[] {
    return [...this.#asked].flatMap(([orderId, { jobId, requestId }]) => {
      const request = this.#store.requests.get(requestId);
      if (request !== undefined && request.answer === null) return [];
      return [{ jobId, orderId, answer: JSON.parse(request?.answer ?? '{}') as Answer }];
    });
  }

  /** Their answers are written. */
  forget(settled: readonly Settled[]): void {
    for (const { orderId } of settled) this.#asked.delete(orderId);
  }

  /** Whether somebody waits for an answer about a job. */
  isAsked(jobId: JobId): boolean {
    return [...this.#asked.values()].some((asked) => asked.jobId === jobId);
  }

  /** The job is somebody else's: its orders are, too. */
  forgetJob(jobId: JobId): void {
    for (const [orderId, asked] of this.#asked) if (asked.jobId === jobId) this.#asked.delete(orderId);
  }

  #apply(order: OpenOrder): Settled {
    const { jobId, orderId, kind, isApplied } = order;
    if (kind !== 'watch' && this.#store.jobs.get(jobId) === undefined) {
      return { jobId, orderId, answer: { error: `job ${jobId} is not watched` } satisfies PassAnswer };
    }
    if (!isApplied) this.#change(order);
    if (kind !== 'sync' && kind !== 'unwatch') return { jobId, orderId, answer: DONE };
    this.#asked.set(orderId, { jobId, requestId: this.#store.requests.add(jobId, kind, this.#now()) });
    return { jobId, orderId, answer: null };
  }

  #change({ jobId, kind, body }: OpenOrder): void {
    const { jobs } = this.#store;
    const job = jobs.get(jobId);
    if (kind === 'watch' && body !== null) jobs.watch(body, this.#now());
    else if (kind === 'unwatch') jobs.unwatch(jobId, 'ending');
    else if (kind === 'end') jobs.unwatch(jobId, 'ended');
    else if (kind === 'resume') jobs.resume(jobId);
    else if (kind === 'drop' && job?.source === 'config' && job.state === 'watched') jobs.setState(jobId, 'ending');
  }
}
