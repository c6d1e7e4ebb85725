/**
 * The heartbeat of an agent: prolongs its leases, reports, and frees the jobs of agents that are silent. Whoever was silent
 * itself, or had no word from the database, frees nobody's jobs for a whole lease: when the database comes back, all agents
 * are heard first, and the same ones hold the same jobs.
 */
import type { JobtailError } from '../errors.ts';
import { asJobtailError } from '../errors.ts';
import type { HeldJob, HeldJobs } from './held-jobs.ts';
import type { Joined } from './joined.ts';
import type { Member, Report, Standing } from './register.ts';

export interface HeartbeatOptions {
  readonly held: HeldJobs;
  /** Called with how long each heartbeat took that went through. */
  readonly onBeat: (roundTripMs: number) => void;
  readonly member: Member;
  readonly monotonic: () => number;
  readonly report: () => Report;
  /** Told after each beat that went through. */
  readonly onStanding: (standing: Standing) => void;
  readonly onLost: (jobs: readonly HeldJob[]) => void;
  /** Told of each beat that failed. */
  readonly onFailure: (error: JobtailError) => void;
}

/** Beats in a lease: one that is lost, and a query that comes to its time limit, leave it alive. */
const BEATS = 3;
/** After a beat that failed. */
const AGAIN_MS = 1_000;
/** The process stood still if a timer of a fraction of it comes so late. */
const STANDSTILL_MS = 3_000;

export class Heartbeat {
  readonly #options: HeartbeatOptions;
  #nextAt = 0;
  #superviseFrom: number;
  #lookedAt: number;
  #beating: Promise<void> | undefined;
  #freeing: Promise<void> | undefined;
  /** Whether the last beat went through. */
  isHeard = true;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
    this.#lookedAt = options.monotonic();
    // All have just begun, perhaps, after the database was away.
    this.#superviseFrom = this.#lookedAt + options.member.leaseMs;
  }

  /** Called several times a second; beats if it is time. */
  look(joined: Joined): void {
    const { monotonic } = this.#options;
    const now = monotonic();
    if (now - this.#lookedAt > STANDSTILL_MS) this.#withhold();
    this.#lookedAt = now;
    if (this.#beating !== undefined || now < this.#nextAt) return;
    this.#beating = this.#beatOnce(joined).finally(() => {
      this.#beating = undefined;
    });
  }

  /** Resolves when nothing of it is under way. */
  async ended(): Promise<void> {
    await this.#beating;
    await this.#freeing;
  }

  /** What the others did is looked at anew. */
  async refresh({ register }: Joined): Promise<void> {
    const { member, report, onStanding } = this.#options;
    onStanding(await register.report(member, report()));
  }

  async #beatOnce(joined: Joined): Promise<void> {
    const { monotonic, onFailure } = this.#options;
    try {
      await this.#beat(joined);
      this.isHeard = true;
    } catch (thrown) {
      this.isHeard = false;
      this.#withhold();
      this.#nextAt = monotonic() + AGAIN_MS;
      onFailure(asJobtailError(thrown));
    }
  }

  async #beat(joined: Joined): Promise<void> {
    const { held, member, monotonic, report, onBeat, onLost, onStanding } = this.#options;
    const sentAt = held.moment();
    this.#nextAt = sentAt.monotonic + member.leaseMs / BEATS;
    const jobs = held.all();
    const standing = await joined.register.report(member, report());
    onBeat(monotonic() - sentAt.monotonic);
    const owned = new Map(standing.own.map(({ jobId, attempt }) => [jobId, attempt]));
    // One that was given up or taken anew meanwhile is another one by now.
    const current = jobs.filter((job) => held.get(job.jobId) === job);
    const lost = current.filter(({ jobId, attempt }) => owned.get(jobId) !== attempt);
    if (lost.length > 0) onLost(lost);
    held.prolong(sentAt);
    onStanding(standing);
    if (standing.silent > 0 && monotonic() >= this.#superviseFrom) this.#free(joined);
  }

  /** Now and then this takes long, and no beat waits for it. */
  #free({ claims, orders, database }: Joined): void {
    const freeAll = async () => {
      while ((await claims.freeSilent()) > 0) await orders.notify(database);
    };
    this.#freeing ??= freeAll()
      .catch((thrown: unknown) => this.#options.onFailure(asJobtailError(thrown)))
      .finally(() => {
        this.#freeing = undefined;
      });
  }

  #withhold(): void {
    this.#superviseFrom = this.#options.monotonic() + this.#options.member.leaseMs;
  }
}
