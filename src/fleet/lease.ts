/**
 * The lease of this agent for the jobs that it owns, and the heartbeat that renews it (`Heartbeat.#renew`).
 *
 * Without a response of the database, the agent may write until its lease ends. The lease starts just before the last
 * successful heartbeat was sent, and lasts `leaseMs` less a margin. The database releases the jobs of the agent `leaseMs`
 * after it received that heartbeat, or later.
 *
 * The lease has ended if one of two clocks shows it. Each alone can be wrong: the monotonic clock stops while the machine
 * sleeps; the wall clock may be set back.
 */
import { asJobtailError, JobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import type { Clock } from '../system/clock.ts';
import type { TakenJob } from './claims.ts';
import type { Joined } from './joined.ts';
import type { AgentReport, FleetSummary, LeasedJob, Member } from './register.ts';

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

interface HeartbeatOptions {
  readonly joined: Joined;
  readonly leased: LeasedJobs;
  readonly member: Member;
  readonly monotonic: () => number;
  readonly report: () => AgentReport;
  readonly onSummary: (summary: FleetSummary) => void;
  readonly onLost: (jobs: readonly LeasedJob[]) => void;
  readonly onFailure: (error: JobtailError) => void;
}

/** Heartbeats in a lease: it must survive one lost heartbeat and one query that times out. */
const BEATS = 3;
/** Pause after a failed heartbeat. */
const AGAIN_MS = 1_000;
/** If `tick` comes this late, the process was paused. */
const STANDSTILL_MS = 3_000;

/**
 * The heartbeat of an agent: renews its lease, reports, and releases the jobs of silent agents. An agent that was
 * silent itself, or had no response from the database, releases no jobs for a whole lease: after a database outage all
 * agents report first.
 */
export class Heartbeat {
  readonly #options: HeartbeatOptions;
  #nextAt = 0;
  #releaseFrom: number;
  #acquireFrom = Number.NEGATIVE_INFINITY;
  #tickedAt: number;
  #beating: Promise<void> | undefined;
  #releasing: Promise<void> | undefined;
  hasSucceeded = true;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
    this.#tickedAt = options.monotonic();
    // After a database outage, the other agents may not have reported yet.
    this.#releaseFrom = this.#tickedAt + options.member.leaseMs;
  }

  tick(): void {
    const { monotonic } = this.#options;
    const now = monotonic();
    if (now - this.#tickedAt > STANDSTILL_MS) this.#postponeReleases();
    this.#tickedAt = now;
    if (this.#beating !== undefined || now < this.#nextAt) return;
    this.#beating = this.#beat().finally(() => {
      this.#beating = undefined;
    });
  }

  /** Waits for the heartbeat that is under way. */
  async ended(): Promise<void> {
    await this.#beating;
    await this.#releasing;
  }

  /** Reports to the database and reads the fleet; does not prolong the lease here, which only `#renew` does. */
  async refresh(): Promise<void> {
    const { joined, member, report } = this.#options;
    this.#receive(await joined.register.report(member, report()));
  }

  /**
   * Whether this agent may acquire jobs. In a restored database the owners are former ones: for a whole lease, until the
   * present ones have reported or may no longer write, it acquires none of their jobs.
   */
  get mayAcquire(): boolean {
    return this.#options.monotonic() >= this.#acquireFrom;
  }

  #receive(summary: FleetSummary): void {
    if (summary.isRestored) {
      this.#postponeReleases();
      this.#acquireFrom = this.#releaseFrom;
    }
    this.#options.onSummary(summary);
  }

  async #beat(): Promise<void> {
    const { monotonic, onFailure } = this.#options;
    try {
      await this.#renew();
      this.hasSucceeded = true;
    } catch (thrown) {
      this.hasSucceeded = false;
      this.#postponeReleases();
      this.#nextAt = monotonic() + AGAIN_MS;
      onFailure(asJobtailError(thrown));
    }
  }

  /** Renews the lease: in the database by `Register.report`, then here by `LeasedJobs.prolong`. */
  async #renew(): Promise<void> {
    const { joined, leased, member, monotonic, report, onLost } = this.#options;
    const sentAt = leased.moment();
    this.#nextAt = sentAt.monotonic + member.leaseMs / BEATS;
    const jobs = leased.all();
    const summary = await joined.register.report(member, report());
    const owned = new Map(summary.own.map(({ jobId, attempt }) => [jobId, attempt]));
    // Skips jobs that were released or acquired again in the meantime.
    const current = jobs.filter((job) => leased.get(job.jobId) === job);
    const lost = current.filter(({ jobId, attempt }) => owned.get(jobId) !== attempt);
    if (lost.length > 0) onLost(lost);
    leased.prolong(sentAt);
    this.#receive(summary);
    if (summary.silent > 0 && monotonic() >= this.#releaseFrom) this.#releaseSilent();
  }

  /** May take long, so no heartbeat waits for it. */
  #releaseSilent(): void {
    const { claims, commands, database } = this.#options.joined;
    const releaseAll = async () => {
      while ((await claims.freeSilent()) > 0) await commands.notify(database);
    };
    this.#releasing ??= releaseAll()
      .catch((thrown: unknown) => this.#options.onFailure(asJobtailError(thrown)))
      .finally(() => {
        this.#releasing = undefined;
      });
  }

  #postponeReleases(): void {
    this.#releaseFrom = this.#options.monotonic() + this.#options.member.leaseMs;
  }
}
