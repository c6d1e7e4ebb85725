/**
 * Notifications: creates the events of jobs and of the agent, turn by turn those of live files (file-events.ts), and
 * delivers them. Events are committed with the positions up to which the state was read, so a kill neither loses nor
 * repeats one. A delivery without a confirmation is repeated.
 */
import os from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import type { Log } from '../agent/ports/host.ts';
import type { Config } from '../config/config.ts';
import { asJobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import type { NotifyEvent } from '../notification.ts';
import { unprovenIn } from '../proven.ts';
import type { Secrets } from '../redact.ts';
import type { Store } from '../store/store.ts';
import { type Clock, systemClock } from '../system/clock.ts';
import { Deliveries, type UnderWay } from './deliveries.ts';
import { newEvent, newsOf } from './events.ts';
import { FileEvents } from './file-events.ts';
import { type NotifyHttp, notifyHttp } from './http.ts';
import { deliveriesOf, Rule } from './rules.ts';

interface NotificationsOptions {
  readonly config: Config;
  readonly store: Store;
  readonly log: Log;
  readonly clock?: Clock;
  /** Why the agent cannot do its work, if so. */
  readonly degraded: () => string | undefined;
  /** Whether the names of jobs are reported. */
  readonly hasJobService: boolean;
  readonly http?: NotifyHttp;
  readonly secrets: Secrets;
  /** In place of a thread. */
  readonly matching?: (source: string, texts: readonly string[]) => Promise<number[] | undefined>;
  /** Of the configuration before. */
  readonly underWay: UnderWay;
}

const TICK_MS = 1_000;
/** After so long, the other files are read: a pattern may take seconds for each piece of a long file. */
const MAX_FILE_MS = 10_000;
/** Shorter failures are no events. */
const DEGRADED_MS = 60_000;
const KEPT_MS = 7 * 86_400_000;
const FORGET_MS = 10 * 60_000;
/** Neither a long file nor a receiver that hangs delays a stop: what it may have received is sent again. */
const STOP_MS = 500;

export class Notifications {
  readonly #options: NotificationsOptions & Required<Pick<NotificationsOptions, 'clock' | 'http'>>;
  readonly #rules: readonly Rule[];
  readonly #wantsFiles: boolean;
  readonly #deliveries: Deliveries;
  readonly #files: FileEvents;
  /** Whether the jobs of the start were read: one that is found afterwards is new. */
  #hasBegun = false;
  /** When old deliveries were removed, by the monotonic clock. */
  #forgottenAt = 0;
  #cancelTick: () => void = () => {};
  #ticking: Promise<void> = Promise.resolve();
  #isStopped = false;
  /** Whether files are read no further: the next process continues at the stored positions. */
  #isOver = false;
  #readVersion = -1;
  /** When the events of jobs were read last, by the monotonic clock. */
  #keptUpAt = 0;
  #failures: ReadonlySet<string> = new Set();

  constructor(options: NotificationsOptions) {
    const { config, clock = systemClock, store, log, http = notifyHttp(config), secrets, underWay } = options;
    const source = sourceOf(config);
    this.#options = { ...options, clock, http };
    this.#rules = config.notify.map((settings) => new Rule(settings));
    this.#wantsFiles = this.#rules.some(({ wantsFiles }) => wantsFiles);
    this.#files = new FileEvents({ ...this.#options, rules: this.#rules });
    this.#deliveries = new Deliveries({ rules: this.#rules, store, clock, log, http, source, secrets, underWay });
  }

  start(): void {
    const { store, clock, underWay } = this.#options;
    const rules = this.#rules.map(({ id }) => id);
    const forget = () => {
      store.outbox.forgetOthers(rules);
      store.outbox.forgetGivenUp(clock.now() - KEPT_MS);
      store.outbox.tryAgain(clock.now());
    };
    void this.#attempt(() => store.transaction(forget), new Set());
    if (this.#rules.length === 0) {
      // Without rules, its end is not seen.
      underWay.outage = undefined;
      return;
    }
    void this.#attempt(() => this.#readJobs(new Set()), new Set());
    this.#plan();
  }

  /** The jobs with events that are not read or not delivered yet. */
  unsent(): ReadonlySet<JobId> {
    if (this.#rules.length === 0) return new Set();
    const { outbox } = this.#options.store;
    const unread = this.#wantsFiles ? outbox.unreadFiles().map(({ jobId }) => jobId) : [];
    const waiting = outbox.waitingJobs(this.#rules.map(({ id }) => id));
    return new Set([...outbox.changedJobs(this.#wantsFiles), ...unread, ...waiting]);
  }

  /** Creates the events of the current state: those of jobs before it returns, those of lines before it resolves. */
  async catchUp(): Promise<void> {
    if (this.#rules.length === 0) return;
    void this.#attempt(() => this.#readJobs(new Set()), new Set());
    await this.#nextTick(true);
  }

  /** Creates the events of the current state, and waits a little for deliveries under way. */
  async stop(): Promise<void> {
    await this.#lastTick();
    await this.#options.underWay.stop(this.#options.clock, STOP_MS);
    await this.#options.http.close();
  }

  /** Creates the events of the current state. Deliveries under way go on, beside the configuration that takes over. */
  async replace(): Promise<void> {
    this.#deliveries.replace();
    await this.#lastTick();
    void this.#options.underWay.ended().then(() => this.#options.http.close());
  }

  async #lastTick(): Promise<void> {
    this.#isStopped = true;
    this.#cancelTick();
    const cancel = this.#options.clock.timer(STOP_MS, () => {
      this.#isOver = true;
    });
    await this.catchUp();
    cancel();
    await this.#files.close();
  }

  #plan(): void {
    this.#cancelTick = this.#options.clock.timer(TICK_MS, () => {
      void this.#nextTick().then(() => {
        if (!this.#isStopped) this.#plan();
      });
    });
  }

  /** One after the other: two that read one file at a time would find its lines twice. */
  #nextTick(isWhole = false): Promise<void> {
    this.#ticking = this.#ticking.then(() => this.#tick(isWhole));
    return this.#ticking;
  }

  /**
   * Reads the state if it changed, and starts due deliveries: two small queries if nothing changed. `isWhole`: all files
   * to their ends.
   */
  async #tick(isWhole: boolean): Promise<void> {
    const { store, clock } = this.#options;
    const failures = new Set<string>();
    this.#keptUpAt = clock.monotonic();
    void this.#attempt(() => this.#readAgent(), failures);
    await this.#attempt(async () => {
      const version = store.version();
      if (version === this.#readVersion) return;
      this.#readJobs(failures);
      const unread = this.#wantsFiles ? store.outbox.unreadFiles() : [];
      this.#files.forgetOthers(unread);
      // A file that cannot be read does not delay the others.
      for (const { jobId, ...key } of unread) {
        const endMs = isWhole ? Number.POSITIVE_INFINITY : clock.monotonic() + MAX_FILE_MS;
        const goesOn = () => {
          if (this.#isOver || clock.monotonic() >= endMs) return false;
          this.#keepUp(failures);
          return true;
        };
        if (!this.#isOver) await this.#attempt(() => this.#files.read(jobId, key, goesOn), failures);
        this.#keepUp(failures);
      }
      if (failures.size === 0) this.#readVersion = version;
    }, failures);
    if (clock.monotonic() - this.#forgottenAt >= FORGET_MS) {
      this.#forgottenAt = clock.monotonic();
      void this.#attempt(() => store.outbox.forgetGivenUp(clock.now() - KEPT_MS), failures);
    }
    void this.#attempt(() => this.#deliveries.startDue(), failures);
    this.#failures = failures;
  }

  /** While long files are read, neither the events of jobs nor deliveries wait. */
  #keepUp(failures: Set<string>): void {
    const { clock } = this.#options;
    if (clock.monotonic() - this.#keptUpAt < TICK_MS) return;
    this.#keptUpAt = clock.monotonic();
    void this.#attempt(() => this.#readAgent(), failures);
    void this.#attempt(() => this.#readJobs(failures), failures);
    void this.#attempt(() => this.#deliveries.startDue(), failures);
  }

  /** A job whose rows cannot be read does not delay the others. */
  #readJobs(failures: Set<string>): void {
    const { store } = this.#options;
    for (const jobId of store.outbox.changedJobs(this.#wantsFiles))
      void this.#attempt(() => store.transaction(() => this.#readJob(jobId)), failures);
    this.#hasBegun = true;
  }

  #readJob(jobId: JobId): void {
    const { store, clock } = this.#options;
    const job = store.jobs.get(jobId);
    if (job === undefined) return;
    const before = store.outbox.jobs.get(jobId);
    const reported = store.jobInformation.get(jobId);
    const isComplete = () => unprovenIn(store, jobId).length === 0;
    // Without rules, jobs were followed before.
    const isNew = before === undefined && (this.#hasBegun || job.polledAt === null);
    const { row, events } = newsOf(before, job, reported, this.#wantsFiles || before?.hasFiles === true);
    if (isNew || before !== undefined) this.#add(events(clock.now(), isComplete));
    if (this.#wantsFiles && before?.hasFiles !== true && !isNew)
      for (const file of store.liveFiles.ofJob(jobId)) store.outbox.skip(file);
    // A report that goes back stays one that differs.
    if (!isDeepStrictEqual(row, before)) store.outbox.jobs.save(row);
  }

  /** Events about the agent itself, after a minute. */
  #readAgent(): void {
    const { store, clock, degraded, underWay } = this.#options;
    const reason = degraded();
    if (reason === undefined) {
      underWay.outage = undefined;
      return;
    }
    underWay.outage ??= { since: clock.monotonic(), rules: new Set() };
    const { since, rules } = underWay.outage;
    if (clock.monotonic() - since < DEGRADED_MS) return;
    const event = newEvent('agent-degraded', clock.now(), { reason });
    const deliveries = deliveriesOf(this.#rules, [event], clock.now()).filter(({ rule }) => !rules.has(rule));
    if (deliveries.length === 0) return;
    store.transaction(() => store.outbox.add(deliveries));
    for (const { rule } of deliveries) rules.add(rule);
  }

  #add(events: readonly NotifyEvent[]): void {
    const { store, clock } = this.#options;
    store.outbox.add(deliveriesOf(this.#rules, events, clock.now()));
  }

  /** Failures are retried at the next tick. */
  async #attempt(work: () => unknown, failures: Set<string>): Promise<void> {
    try {
      await work();
    } catch (thrown) {
      const { code, message, hint } = asJobtailError(thrown);
      if (!this.#failures.has(message) && !failures.has(message))
        this.#options.log.warn({ code, err: message, hint }, 'creating notifications failed');
      failures.add(message);
    }
  }
}

/** The sender: the `source` of CloudEvents. */
export const sourceOf = ({ fleet }: Config) => `jobtail/${fleet?.name ?? os.hostname()}`;
