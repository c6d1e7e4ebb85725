/**
 * Notifications: reads state and mirrors from its own stored positions, creates events, and delivers them. Events and
 * positions are committed together, so a kill neither loses nor repeats an event. A delivery without a confirmation is
 * repeated.
 */
import { randomUUID } from 'node:crypto';
import os from 'node:os';
import type { Log } from '../agent/ports/host.ts';
import type { Config } from '../config/config.ts';
import { asJobtailError } from '../errors.ts';
import { isOver, type JobId, keyText, type LiveFileKey } from '../job.ts';
import { statesOf, withoutColours } from '../line-states.ts';
import { MAX_LINE_CHARACTERS, type NotifyEvent } from '../notification.ts';
import { unprovenIn } from '../proven.ts';
import type { Secrets } from '../redact.ts';
import { expressionThread, matchingIn } from '../search/guarded-thread.ts';
import { type DeliveryRow, MAX_WAITING, type ReadPositionRow } from '../store/outbox.ts';
import type { JobRow, LiveFileRow } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import { type Clock, systemClock } from '../system/clock.ts';
import { Deliveries, type UnderWay } from './deliveries.ts';
import { type EventOf, newEvent, newsOf } from './events.ts';
import { type NotifyHttp, notifyHttp } from './http.ts';
import { readLines } from './lines.ts';
import { Rule } from './rules.ts';

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
/** Skipped lines of a rule are logged once in this time, with their number. */
const SKIPPED_MS = 60_000;
/** The lines of a job wait so long for a report of its name. */
const NAME_MS = 15 * 60_000;
const KEPT_MS = 7 * 86_400_000;
const FORGET_MS = 10 * 60_000;
/** Neither a long file nor a receiver that hangs delays a stop: what it may have received is sent again. */
const STOP_MS = 500;

interface FileTurn {
  /** Those of this tick. */
  readonly failures: Set<string>;
  /** When the other files are read, by the monotonic clock. */
  readonly endMs: number;
}

export class Notifications {
  readonly #options: NotificationsOptions & Required<Pick<NotificationsOptions, 'clock' | 'http'>>;
  readonly #rules: readonly Rule[];
  readonly #wantsFiles: boolean;
  readonly #deliveries: Deliveries;
  readonly #thread = expressionThread();
  /** Lines of each rule that were skipped and are not logged yet, and when the last ones were logged. */
  readonly #skipped = new Map<Rule, { since: number; lines: number }>();
  /** Whether the jobs of the start were read: one that is found afterwards is new. */
  #hasBegun = false;
  /** How far files without a further complete line were read. */
  readonly #seen = new Map<string, string>();
  /** Since when files wait for the name of their job, by the monotonic clock. */
  readonly #unnamed = new Map<string, number>();
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
    this.#readJobs(new Set());
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
    await this.#thread.close();
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
      const names = new Set(unread.map(nameOf));
      for (const known of [this.#seen, this.#unnamed])
        for (const name of known.keys()) if (!names.has(name)) known.delete(name);
      // A file that cannot be read does not delay the others.
      for (const { jobId, ...key } of unread) {
        const turn = { failures, endMs: isWhole ? Number.POSITIVE_INFINITY : clock.monotonic() + MAX_FILE_MS };
        if (!this.#isOver) await this.#attempt(() => this.#readFile(jobId, key, turn), failures);
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
    store.outbox.jobs.save(row);
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
    const deliveries = this.#for([event]).filter(({ rule }) => !rules.has(rule));
    if (deliveries.length === 0) return;
    store.transaction(() => store.outbox.add(deliveries));
    for (const { rule } of deliveries) rules.add(rule);
  }

  async #readFile(jobId: JobId, key: LiveFileKey, turn: FileTurn): Promise<void> {
    const { store } = this.#options;
    for (;;) {
      const row = store.liveFiles.get(jobId, key);
      const job = store.jobs.get(jobId);
      // A generation under rotation is read afterwards.
      if (row === undefined || job === undefined || row.rotation !== null) return;
      if (!isOver(job) && this.#waitsForName(row)) return;
      const at = store.outbox.position(jobId, key) ?? { jobId, ...keyOf(row), generation: 1, position: 0, lines: 0 };
      if (at.generation > row.generation) {
        // An older state was restored.
        this.#commit(row, { ...at, generation: row.generation, position: 0, lines: 0 }, []);
        return;
      }
      const isFormer = at.generation < row.generation;
      if (!isFormer && !isOver(job) && this.#seen.get(nameOf(row)) === endOf(row)) return;
      if (!(await this.#readGeneration(row, at, job, turn))) return;
      if (!isFormer) return void this.#seen.set(nameOf(row), endOf(row));
    }
  }

  /** Whether a rule may take the lines by the name of the job, which may still be reported. */
  #waitsForName(row: LiveFileRow): boolean {
    const { store, clock, hasJobService } = this.#options;
    const isReported = !hasJobService || store.jobInformation.get(row.jobId) !== undefined;
    if (isReported || !this.#rules.some((rule) => rule.needsName(row))) return false;
    const now = clock.monotonic();
    const since = this.#unnamed.get(nameOf(row)) ?? now;
    this.#unnamed.set(nameOf(row), since);
    return now - since < NAME_MS;
  }

  /** Reads one generation to its end; false if the file changed meanwhile or its turn is over, and must be read again. */
  async #readGeneration(row: LiveFileRow, from: ReadPositionRow, job: JobRow, turn: FileTurn): Promise<boolean> {
    const { store, config, clock } = this.#options;
    const { jobId } = row;
    const former = row.generation - from.generation;
    const jobName = store.jobInformation.get(jobId)?.information.name ?? undefined;
    const about = { jobId, ...(jobName === undefined ? {} : { jobName }), taskId: row.taskId, file: row.file };
    const rules = this.#rules.filter((rule) => rule.readsFile(about));
    const end = former > 0 ? Number.POSITIVE_INFINITY : row.position;
    const isLast = former > 0 || isOver(job);
    const options = { mirrorDirectory: config.mirror.directory, jobId, key: keyOf(row), former, end, isLast };
    let at = from;
    const pieces = rules.length === 0 ? [] : readLines({ ...options, from: at.position });
    for await (const { lines, next, isCut } of pieces) {
      const found: DeliveryRow[] = [];
      for (const rule of rules)
        found.push(...(await this.#matches(rule, lines, at, { ...about, generation: at.generation })));
      at = { ...at, position: next, lines: at.lines === null ? null : at.lines + lines.length - Number(isCut) };
      if (!this.#commit(row, at, found) || this.#isOver || clock.monotonic() >= turn.endMs) return false;
      this.#keepUp(turn.failures);
    }
    if (former === 0) return rules.length > 0 || this.#commit(row, { ...at, position: row.position, lines: null }, []);
    const kept = row.mismatches.find(
      ({ generation, kind }) => generation === from.generation + 1 && (kind === 'truncated' || kind === 'rewritten'),
    );
    const type = kept?.kind === 'truncated' ? 'truncated' : 'rewritten';
    const event = newEvent(type, clock.now(), {
      ...about,
      generation: from.generation + 1,
      ...(kept === undefined ? {} : { reason: kept.reason }),
    });
    const next = { ...at, generation: from.generation + 1, position: 0, lines: 0 };
    return this.#commit(row, next, this.#for([event]));
  }

  async #matches(
    rule: Rule,
    lines: readonly string[],
    { lines: before }: ReadPositionRow,
    about: EventOf,
  ): Promise<DeliveryRow[]> {
    const { clock, log } = this.#options;
    const states = lines.flatMap((line, index) => statesOf(line, MAX_LINE_CHARACTERS).map((text) => ({ index, text })));
    const texts = states.map(({ text }) => withoutColours(text));
    const source = rule.settings.match ?? '';
    const matching = await (this.#options.matching?.(source, texts) ?? matchingIn(this.#thread, source, texts));
    const skipped = this.#skipped.get(rule) ?? { since: Number.NEGATIVE_INFINITY, lines: 0 };
    if (matching === undefined) skipped.lines += lines.length;
    if (skipped.lines > 0 && clock.monotonic() - skipped.since >= SKIPPED_MS) {
      const { jobId, taskId, file } = about;
      const hint = 'write it without a repetition inside of another one';
      const fields = { jobId, taskId, file, target: rule.target, lines: skipped.lines, hint };
      log.warn(fields, 'the pattern of a notification takes too long, lines skipped');
      Object.assign(skipped, { since: clock.monotonic(), lines: 0 });
    }
    this.#skipped.set(rule, skipped);
    if (matching === undefined) return [];
    // Of a line, the last of its states that matches.
    const ofLines = new Map(matching.flatMap((at) => states[at] ?? []).map((match) => [match.index, match]));
    const found = [...ofLines.values()];
    const deliveries = found.slice(0, MAX_WAITING).map(({ index, text }) => {
      const line = before === null ? {} : { line: before + index + 1 };
      return deliveryOf(rule, newEvent('match', clock.now(), { ...about, ...line, text }), clock.now());
    });
    const last = deliveries.pop();
    const count = found.length - deliveries.length;
    return last === undefined ? [] : [...deliveries, { ...last, event: { ...last.event, count } }];
  }

  /** Commits a position and its deliveries; false if the generation changed. */
  #commit(row: LiveFileRow, at: ReadPositionRow, deliveries: readonly DeliveryRow[]): boolean {
    const { store } = this.#options;
    return store.transaction(() => {
      const now = store.liveFiles.get(row.jobId, row);
      if (now === undefined || now.generation !== row.generation || now.rotation !== null) return false;
      store.outbox.add(deliveries);
      store.outbox.savePosition(at);
      return true;
    });
  }

  #add(events: readonly NotifyEvent[]): void {
    this.#options.store.outbox.add(this.#for(events));
  }

  #for(events: readonly NotifyEvent[]): DeliveryRow[] {
    const now = this.#options.clock.now();
    return events.flatMap((event) =>
      this.#rules.filter((rule) => rule.takes(event)).map((rule) => deliveryOf(rule, event, now)),
    );
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

function deliveryOf({ id: rule }: Rule, event: NotifyEvent, now: number): DeliveryRow {
  const { jobId } = event;
  const at = { madeAt: now, dueAt: now, attempts: 0, lastError: null };
  return { deliveryId: randomUUID(), jobId: (jobId as JobId | undefined) ?? null, rule, event, ...at };
}

const keyOf = ({ taskId, file }: LiveFileKey): LiveFileKey => ({ taskId, file });
const nameOf = (row: LiveFileKey & { readonly jobId: JobId }) => `${row.jobId} ${keyText(row)}`;
const endOf = ({ generation, position }: LiveFileRow) => `${generation} ${position}`;
/** The sender: the `source` of CloudEvents. */
export const sourceOf = ({ fleet }: Config) => `jobtail/${fleet?.name ?? os.hostname()}`;
