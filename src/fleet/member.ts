/** An agent of a fleet. During a database outage it keeps its jobs until their leases expire; then it waits. */
import { randomUUID } from 'node:crypto';
import type { SharedService } from '../agent/calls.ts';
import { Failures } from '../agent/failures.ts';
import type { Follower, Ownership } from '../agent/ownership.ts';
import type { FleetSettings } from '../config/schema.ts';
import { eachAlone } from '../each-alone.ts';
import { asJobtailError, JobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import type { RowChanges } from '../store/portable-rows.ts';
import type { LiveFileRow, WatchRequest } from '../store/rows.ts';
import { sleep } from '../system/clock.ts';
import type { AgentAbout, AgentReport, FleetSummary, LeasedJob, Member } from './agents/agents.ts';
import { Heartbeat } from './agents/heartbeat.ts';
import { Readiness } from './agents/readiness.ts';
import { FleetJobs } from './commands/fleet-jobs.ts';
import type { FleetAddress } from './database/database.ts';
import { bringOwnJobs, type Joined, openFleet } from './joined.ts';
import type { AttachedAgent, Following, OwnParts } from './owners/following.ts';
import { LeasedJobs } from './owners/leased-jobs.ts';
import { Rounds } from './rounds.ts';
import { Handover } from './rows/handover.ts';

interface MemberOptions extends FleetAddress, OwnParts {
  readonly settings: FleetSettings;
  readonly about: AgentAbout;
  /** Milliseconds since the last poll of the job that waits longest; null if there is none. */
  readonly pollAgeMs: () => number | null;
  readonly unready: () => string | undefined;
}

/** Of an agent that has joined, also while the database is away. */
interface MemberParts {
  readonly joined: Joined;
  readonly heartbeat: Heartbeat;
  readonly handover: Handover;
  readonly rounds: Rounds;
}

const SCOPE = 'the fleet';
const TICK_MS = 250;
const ROUND_MS = 1_000;
/** Notifications within this time count as one. */
const TOGETHER_MS = 20;
const DRAIN_MS = 60_000;

export class FleetMember implements Ownership, SharedService {
  readonly #options: MemberOptions;
  readonly #member: Member;
  readonly #leased: LeasedJobs;
  readonly #stop = new AbortController();
  readonly knownJobs = new FleetJobs(() => this.#parts?.joined);
  readonly #changes: RowChanges;
  readonly #failures: Failures;
  readonly #readiness: Readiness;
  /** Resolves when a command requests that it drains. Rejects if it cannot join. */
  readonly ended: Promise<undefined>;
  #askToDrain = () => {};
  #fail: (error: JobtailError) => void = () => {};
  /** Ends the pause between two rounds. */
  #woken = new AbortController();
  readonly #attached: AttachedAgent = { follower: undefined, configured: [], unsent: () => new Set() };
  /** Undefined until it has joined: it has no jobs yet. */
  #parts: MemberParts | undefined;
  #summary: FleetSummary | undefined;
  /** Moments of the calls since the last report, and of a minute before. */
  #callsAt: number[] = [];
  #isDraining = false;
  #isHandingOff = false;
  /** The database reported a command, or released jobs. */
  #isNoticed = false;
  /** A heartbeat alone is no recovery. */
  #isRoundFailing = false;
  #running: Promise<void> = Promise.resolve();
  #cancelTick = () => {};

  constructor(options: MemberOptions) {
    this.#options = options;
    const { settings, store, clock, about, mirror } = options;
    const { name, maxJobs, heartbeatMs: leaseMs } = settings;
    this.#member = {
      name,
      stateId: store.fleetLeases.stateId(),
      instance: randomUUID(),
      mostJobs: maxJobs,
      leaseMs,
      mirror,
      about,
    };
    this.#leased = new LeasedJobs(clock, leaseMs);
    const { monotonic, now } = clock;
    this.#readiness = new Readiness({ ...options, monotonic, now });
    this.#changes = store.noteChanges();
    this.#failures = new Failures(options.log);
    this.ended = new Promise((resolve, reject) => {
      this.#askToDrain = () => resolve(undefined);
      this.#fail = reject;
    });
    this.ended.catch(() => {});
  }

  start(): void {
    this.#planTick();
    this.#running = this.#run();
  }

  /** Follows the owned jobs from now on, with this configuration. */
  attach(follower: Follower, configured: readonly WatchRequest[], unsent: AttachedAgent['unsent']): void {
    Object.assign(this.#attached, { follower, configured, unsent });
    this.#woken.abort();
  }

  /** The agent stops, or restarts in this process: it keeps its jobs. */
  detach(): void {
    this.#attached.follower = undefined;
  }

  owns(jobId: JobId): boolean {
    return this.#leased.stateOf(jobId) === 'following';
  }

  requireLease(jobId: JobId): void {
    this.#leased.require(jobId);
  }

  async fence(row: LiveFileRow): Promise<void> {
    const { jobId } = row;
    this.#leased.require(jobId);
    const job = this.#leased.get(jobId);
    if (job !== undefined && (await this.#parts?.handover.fence(job, row)) === true) return;
    this.#leased.refused += 1;
    throw new JobtailError('superseded', `job ${jobId} is another agent's by now`);
  }

  async keep(jobId: JobId): Promise<void> {
    const job = this.#leased.get(jobId);
    if (job === undefined) return;
    await this.#parts?.handover.write([job]).catch((thrown: unknown) => this.#failed(asJobtailError(thrown)));
  }

  /** Agents that share the service, this one included. */
  get sharers(): number {
    return this.#summary?.alive ?? 1;
  }

  called(): void {
    this.#callsAt.push(this.#options.clock.monotonic());
  }

  get #callsLastMinute(): number {
    const since = this.#options.clock.monotonic() - 60_000;
    this.#callsAt = this.#callsAt.filter((at) => at > since);
    return this.#callsAt.length;
  }

  copyMark(jobId: JobId): string | null {
    return String(this.#leased.get(jobId)?.attempt ?? 0);
  }

  get numbers() {
    const { heartbeat, rounds } = this.#parts ?? {};
    const self = this.#leased.size;
    const { jobs = 0, waiting = 0, waitingMs = 0, agents = [] } = this.#summary ?? {};
    return {
      isUp: heartbeat?.hasSucceeded === true,
      leaseAgeSeconds: this.#leased.leaseAgeMs / 1000,
      takeovers: rounds?.taking.takeovers ?? 0,
      lost: rounds?.following.lostJobs ?? 0,
      refusedWrites: this.#leased.refused,
      agents: agents.filter(({ mostJobs }) => mostJobs > 0).length,
      /** Jobs that this agent owns, that others own, and that wait for an owner. */
      jobs: { self, others: Math.max(0, jobs - waiting - self), nobody: waiting },
      waitingSeconds: waitingMs / 1000,
      notFollowed: this.#leased.all('taken', 'paused').length,
    };
  }

  /** Hands off all jobs; other agents acquire what is left when the lease expires. */
  async drain(): Promise<void> {
    const { log, clock } = this.#options;
    this.#isDraining = true;
    // Until the report, the other agents leave this one its share of the jobs.
    await this.#parts?.heartbeat.refresh().catch((thrown: unknown) => this.#failed(asJobtailError(thrown)));
    this.#isHandingOff = true;
    const endsAt = clock.monotonic() + DRAIN_MS;
    while (this.#leased.size > 0 && clock.monotonic() < endsAt && this.#parts !== undefined) {
      this.#woken.abort();
      await sleep(clock, TICK_MS);
    }
    const left = this.#leased.size;
    if (left === 0) log.info({}, 'drained');
    else log.warn({ jobs: left }, 'jobs not handed off, other agents acquire them later');
  }

  /** Writes the rows of the owned jobs and leaves. The next start within a lease continues with them. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#woken.abort();
    this.#cancelTick();
    await this.#running;
    if (this.#parts === undefined) return;
    const { joined, heartbeat, handover } = this.#parts;
    await heartbeat.ended();
    const steps = [
      () => handover.writeAnd(this.#leased.all('following', 'paused'), async () => {}),
      () => joined.agents.leave(this.#member),
    ];
    for (const { error } of await eachAlone(steps, (step) => step())) this.#failed(error);
    await joined.close();
  }

  #planTick(): void {
    this.#cancelTick = this.#options.clock.timer(TICK_MS, () => {
      this.#planTick();
      this.#tick();
    });
  }

  #tick(): void {
    this.#parts?.rounds.following.pauseIfExpired();
    this.#parts?.heartbeat.tick();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      let pauseMs = ROUND_MS;
      try {
        if (this.#parts === undefined) await this.#join();
        else if (await this.#round(this.#parts)) pauseMs = 0;
        this.#isRoundFailing = false;
      } catch (thrown) {
        this.#isRoundFailing = true;
        this.#failed(asJobtailError(thrown));
      }
      await sleep(this.#options.clock, pauseMs, this.#woken.signal).catch(() => {});
      this.#woken = new AbortController();
    }
  }

  async #round({ heartbeat, rounds }: MemberParts): Promise<boolean> {
    if (!heartbeat.hasSucceeded) return false;
    if (this.#isNoticed) {
      await sleep(this.#options.clock, TOGETHER_MS);
      this.#isNoticed = false;
      rounds.noticed();
      await heartbeat.refresh();
    }
    return await rounds.round(this.#summary, this.#isHandingOff, heartbeat.mayAcquire);
  }

  async #join(): Promise<void> {
    const { settings, store, log, mirror } = this.#options;
    const onIgnored = (what: string) => log.warn({ scope: 'the fleet', what }, 'row of the database ignored');
    const onNotice = () => {
      this.#isNoticed = true;
      this.#woken.abort();
    };
    const onConnect = () => {
      // The database may have been restored, to a moment after the last heartbeat.
      if (this.#parts !== undefined) this.#writeAgain(this.#parts.handover);
      onNotice();
    };
    const { instance } = this.#member;
    const joined = await openFleet({ ...this.#options, onIgnored }, settings.name, { instance, onNotice, onConnect });
    try {
      if (!settings.separateMirrors) await joined.agents.requireSameMirror(this.#member);
      const sentAt = this.#leased.moment();
      if (!(await joined.agents.join(this.#member))) throw await joined.agents.nameTaken(settings.name);
      this.#leased.prolong(sentAt);
      await bringOwnJobs(store, mirror, joined, log);
      const parts = this.#partsOf(joined);
      await parts.rounds.taking.begin();
      this.#parts = parts;
      this.#failures.cleared(SCOPE);
      log.info({ fleet: joined.database.where, agent: settings.name }, 'joined the fleet');
      this.#woken.abort();
    } catch (error) {
      await joined.close();
      throw error;
    }
  }

  #partsOf(joined: Joined): MemberParts {
    const { store, mirror, clock } = this.#options;
    const { database, claims } = joined;
    const monotonic = () => clock.monotonic();
    const onLost = (jobs: readonly LeasedJob[]) => rounds.following.lost(jobs);
    const onFailure = (error: JobtailError) => this.#failed(error);
    const handover = new Handover({ store, database, claims, mirror, onLost }, this.#changes);
    const own = { leased: this.#leased, member: this.#member, joined, onFailure };
    const rounds = new Rounds({ ...this.#options, ...own, attached: this.#attached, handover }, this.#readiness);
    const heartbeat = new Heartbeat({
      ...own,
      onLost,
      monotonic,
      report: () => this.#report(),
      onSummary: (summary) => this.#heard(summary, rounds.following, handover),
    });
    return { joined, heartbeat, handover, rounds };
  }

  #heard(summary: FleetSummary, following: Following, handover: Handover): void {
    this.#summary = summary;
    if (!this.#isRoundFailing) this.#failures.cleared(SCOPE);
    if (summary.isRestored) this.#writeAgain(handover);
    following.resumeIfValid(summary.own);
    if (summary.drainAsked) this.#askToDrain();
  }

  /** The database may have the rows of a backup. */
  #writeAgain(handover: Handover): void {
    handover.writeAgain(this.#leased.all('following', 'paused', 'leaving'));
  }

  #failed(error: JobtailError): void {
    if (error.code === 'aborted' && this.#stop.signal.aborted) return;
    this.#failures.failed(SCOPE, error);
    if (error.code === 'config' || error.code === 'locked') this.#fail(error);
  }

  #report(): AgentReport {
    const { pollAgeMs, settings } = this.#options;
    const capacity = this.#readiness.capacity(settings.maxJobs);
    return {
      pollAgeMs: pollAgeMs(),
      callsLastMinute: this.#callsLastMinute,
      isDraining: this.#isDraining,
      capacity,
      lacks: this.#readiness.lacks,
      notFollowed: this.numbers.notFollowed,
    };
  }
}
