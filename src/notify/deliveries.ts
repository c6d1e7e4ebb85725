/** Delivers the outbox: one delivery at a time for each rule, with back-off; many are combined. */
import type { Log } from '../agent/ports/host.ts';
import { nominalPause } from '../back-off.ts';
import { asJobtailError } from '../errors.ts';
import type { DeliveryRow } from '../store/outbox.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../system/clock.ts';
import type { Rule } from './rules.ts';
import { type SendersOptions, send } from './senders.ts';

/** Maximum single events of a rule per minute; further ones of one type are combined. */
const MAX_SINGLE = 10;
const WINDOW_MS = 60_000;
const AT_ONCE = 1_000;
/** Maximum jobs named in a combined event. */
const MAX_JOBS = 100;
const RETRY = { firstMs: 5_000, maxMs: 15 * 60_000 };
/** About a day, with the back-off. */
const MAX_ATTEMPTS = 100;
/** What waited behind others for so long is given up when it fails. */
const MAX_AGE_MS = 24 * 60 * 60_000;

interface RateWindow {
  startedAt: number;
  sent: number;
  /** Types that were combined: others have their turn. */
  readonly combined: Set<string>;
}

/** What goes on while another configuration takes over. Rules are named by their ids. */
export class UnderWay {
  /** The deliveries of this minute. */
  readonly windows = new Map<string, RateWindow>();
  /** The failure of the agent: since when, by the monotonic clock, and the rules with an event of it. */
  outage: { readonly since: number; readonly rules: Set<string> } | undefined;
  readonly #stop = new AbortController();
  readonly #runs = new Map<string, Promise<void>>();

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  has(rule: string): boolean {
    return this.#runs.has(rule);
  }

  add(rule: string, run: Promise<void>): void {
    this.#runs.set(
      rule,
      run.finally(() => this.#runs.delete(rule)),
    );
  }

  async ended(): Promise<void> {
    await Promise.all(this.#runs.values());
  }

  /** Waits for them up to `limitMs`; those that are stopped are repeated by the next process. */
  async stop(clock: Clock, limitMs: number): Promise<void> {
    const cancel = clock.timer(limitMs, () => this.#stop.abort());
    await this.ended();
    cancel();
  }
}

interface DeliveriesOptions extends SendersOptions {
  readonly rules: readonly Rule[];
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly underWay: UnderWay;
}

const isFresh = ({ attempts }: DeliveryRow) => attempts === 0;
const countOf = (rows: readonly DeliveryRow[]) => rows.reduce((sum, { event }) => sum + event.count, 0);

export class Deliveries {
  readonly #options: DeliveriesOptions;
  #isReplaced = false;
  /** Until when a rule that fails waits, by the monotonic clock: one delivery tries for all, which stay combinable. */
  readonly #pausedUntil = new Map<Rule, number>();
  /** The failure to write the state, logged once until it clears. */
  #failure: string | undefined;

  constructor(options: DeliveriesOptions) {
    this.#options = options;
  }

  /** Starts due deliveries; a slow target does not delay other rules. */
  startDue(): void {
    const { rules, store, clock, underWay } = this.#options;
    const due = store.outbox.dueRules(clock.now());
    const now = clock.monotonic();
    const isReady = (rule: Rule) => !underWay.has(rule.id) && now >= (this.#pausedUntil.get(rule) ?? now);
    for (const rule of rules) if (isReady(rule) && due.includes(rule.id)) underWay.add(rule.id, this.#run(rule));
  }

  /** Starts no further delivery: those of another configuration are next. */
  replace(): void {
    this.#isReplaced = true;
  }

  /** Sends until nothing is due, one fails, or the limit of the minute is reached. Never rejects. */
  async #run(rule: Rule): Promise<void> {
    try {
      for (let next = this.#next(rule); next !== undefined; next = this.#next(rule))
        if (!(await this.#deliver(rule, next))) return;
    } catch (thrown) {
      const { code, message, hint } = asJobtailError(thrown);
      if (this.#failure !== message)
        this.#options.log.warn({ code, err: message, hint }, 'creating notifications failed');
      this.#failure = message;
    }
  }

  /** The next delivery, or several combined; undefined if the limit of the minute is reached. */
  #next(rule: Rule): DeliveryRow | undefined {
    const { store, clock, underWay } = this.#options;
    const now = clock.monotonic();
    let window = underWay.windows.get(rule.id);
    if (window === undefined || now - window.startedAt >= WINDOW_MS)
      window = { startedAt: now, sent: 0, combined: new Set() };
    underWay.windows.set(rule.id, window);
    if (window.sent >= MAX_SINGLE || this.#isReplaced || underWay.signal.aborted) return undefined;
    const { combined } = window;
    const due = store.outbox.due(rule.id, clock.now(), AT_ONCE).filter(({ event }) => !combined.has(event.type));
    const left = MAX_SINGLE - window.sent;
    // The last one of a minute is fresh: many that were attempted keep no newer ones waiting.
    const first = (left === 1 ? due.find(isFresh) : undefined) ?? due[0];
    if (first === undefined) return undefined;
    const fresh = isFresh(first) ? due.filter((row) => isFresh(row) && row.event.type === first.event.type) : [];
    const isGathered = fresh.length > 1 && countOf(fresh) > left;
    window.sent += 1;
    if (isGathered) combined.add(first.event.type);
    return isGathered ? this.#gather(fresh, first) : first;
  }

  /** Combines deliveries into one row. A delivery that was attempted may have been received, so it is not changed. */
  #gather(due: readonly DeliveryRow[], first: DeliveryRow): DeliveryRow {
    const { outbox } = this.#options.store;
    const jobs = [...new Set(due.flatMap(({ event }) => event.jobs ?? event.jobId ?? []))].slice(0, MAX_JOBS);
    const more = jobs.length > 1 ? { jobs } : {};
    const gathered = { ...first, event: { ...first.event, count: countOf(due), ...more } };
    this.#options.store.transaction(() => {
      for (const row of due) if (row.deliveryId !== first.deliveryId) outbox.remove(row);
      outbox.save(gathered);
    });
    return gathered;
  }

  /**
   * Returns whether it was received. The attempt is committed first, with its pause: a process that takes over after a kill
   * neither repeats it without limit nor beside one that still sends it.
   */
  async #deliver(rule: Rule, row: DeliveryRow): Promise<boolean> {
    const { store, clock, log } = this.#options;
    const { jobId, event } = row;
    const fields = { jobId, event: event.type, id: event.id, target: rule.target };
    const attempts = row.attempts + 1;
    const backOffMs = nominalPause(attempts, RETRY);
    const tried = { ...row, attempts, dueAt: clock.now() + backOffMs };
    store.transaction(() => this.#saveIfThere(tried));
    this.#failure = undefined;
    try {
      await send(rule, event, this.#options, this.#options.underWay.signal);
    } catch (thrown) {
      const error = asJobtailError(thrown);
      if (error.code === 'aborted') return false;
      const isGivenUp = attempts >= MAX_ATTEMPTS || clock.now() - row.madeAt >= MAX_AGE_MS;
      const pauseMs = Math.max(backOffMs, error.retryAfterMs ?? 0);
      const isFirst = !this.#pausedUntil.has(rule);
      this.#pausedUntil.set(rule, clock.monotonic() + pauseMs);
      const dueAt = isGivenUp ? null : clock.now() + pauseMs;
      store.transaction(() => this.#saveIfThere({ ...tried, dueAt, lastError: error.message }));
      const detail = { ...fields, attempts, code: error.code, err: error.message, hint: error.hint };
      if (isGivenUp) log.error(detail, 'notification given up');
      else if (isFirst) log.warn(detail, 'notification failed');
      return false;
    }
    store.transaction(() => store.outbox.remove(row));
    log.info(fields, 'notification delivered');
    this.#pausedUntil.delete(rule);
    return true;
  }

  /**
   * Another agent may own the job with its deliveries by now, another configuration be without the rule, or the job be
   * removed.
   */
  #saveIfThere(row: DeliveryRow): void {
    const { outbox } = this.#options.store;
    const stored = outbox.get(row);
    if (stored !== undefined) outbox.save({ ...row, jobId: stored.jobId });
  }
}
