/**
 * The heartbeat of an agent: renews its lease, reports, and releases the jobs of silent agents. An agent that was
 * silent itself, or had no response from the database, releases no jobs for a whole lease: after a database outage all
 * agents report first.
 */
import { asJobtailError, type JobtailError } from '../../errors.ts';
import type { Joined } from '../joined.ts';
import type { LeasedJobs } from '../owners/leased-jobs.ts';
import type { AgentReport, FleetSummary, LeasedJob, Member } from './agents.ts';

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
    this.#receive(await joined.agents.report(member, report()));
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

  /** Renews the lease: in the database by `FleetAgents.report`, then here by `LeasedJobs.prolong`. */
  async #renew(): Promise<void> {
    const { joined, leased, member, monotonic, report, onLost } = this.#options;
    const sentAt = leased.moment();
    this.#nextAt = sentAt.monotonic + member.leaseMs / BEATS;
    const jobs = leased.all();
    const summary = await joined.agents.report(member, report());
    const owned = new Map(summary.own.map(({ jobId, attempt }) => [jobId, attempt]));
    // The response to a release shows whether its job was lost.
    const kept = new Set(leased.all('taken', 'following', 'paused'));
    onLost(jobs.filter((job) => kept.has(job) && owned.get(job.jobId) !== job.attempt));
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
