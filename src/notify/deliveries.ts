/** Delivers the outbox: one delivery at a time for each rule, with back-off; many are combined. */
import type { Log } from '../agent/ports.ts';
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
const FIRST_RETRY_MS = 5_000;
const MAX_RETRY_MS = 15 * 60_000;
/** About a day, with the back-off. */
export const MAX_ATTEMPTS = 100;

export interface DeliveriesOptions extends SendersOptions {
  readonly rules: readonly Rule[];
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
}

const countOf = (rows: readonly DeliveryRow[]) => rows.reduce((sum, { event }) => sum + event.count, 0);

interface Window {
  startedAt: number;
  sent: number;
}

export class Deliveries {
  readonly #options: DeliveriesOptions;
  readonly #stop = new AbortController();
  readonly #running = new Map<Rule, Promise<void>>();
  readonly #windows = new Map<Rule, Window>();
  readonly #failing = new Set<Rule>();
  /** The failure to write the state, logged once until it clears. */
  #failure: string | undefined;

  constructor(options: DeliveriesOptions) {
    this.#options = options;
  }

  /** Starts due deliveries; a slow target does not delay other rules. */
  startDue(): void {
    const { rules, store, clock } = this.#options;
    const due = store.outbox.dueRules(clock.now());
    for (const rule of rules) {
      if (this.#running.has(rule) || !due.includes(rule.id)) continue;
      const run = this.#run(rule).finally(() => this.#running.delete(rule));
      this.#running.set(rule, run);
    }
  }

  /** Waits for deliveries under way, up to `limitMs`. */
  async stop(limitMs: number): Promise<void> {
    const cancel = this.#options.clock.timer(limitMs, () => this.#stop.abort());
    await Promise.all(this.#running.values());
    cancel();
    this.#stop.abort();
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
    const { store, clock } = this.#options;
    const now = clock.monotonic();
    const window = this.#windows.get(rule) ?? { startedAt: Number.NEGATIVE_INFINITY, sent: 0 };
    if (now - window.startedAt >= WINDOW_MS) Object.assign(window, { startedAt: now, sent: 0 });
    this.#windows.set(rule, window);
    if (window.sent >= MAX_SINGLE || this.#stop.signal.aborted) return undefined;
    const due = store.outbox.due(rule.id, clock.now(), AT_ONCE);
    const [first] = due;
    if (first === undefined) return undefined;
    window.sent += 1;
    const fresh = due.filter(({ attempts, event }) => attempts === 0 && event.type === first.event.type);
    const isGathered = window.sent === 1 && first.attempts === 0 && countOf(fresh) > MAX_SINGLE;
    if (!isGathered) return first;
    window.sent = MAX_SINGLE;
    return this.#gather(fresh, first);
  }

  /** Combines deliveries into one row. A delivery that was attempted may have been received, so it is not changed. */
  #gather(due: readonly DeliveryRow[], first: DeliveryRow): DeliveryRow {
    const { outbox } = this.#options.store;
    const jobs = [...new Set(due.flatMap(({ jobId }) => jobId ?? []))].slice(0, MAX_JOBS);
    const more = jobs.length > 1 ? { jobs } : {};
    const gathered = { ...first, event: { ...first.event, count: countOf(due), ...more } };
    this.#options.store.transaction(() => {
      for (const row of due) if (row.deliveryId !== first.deliveryId) outbox.remove(row);
      outbox.save(gathered);
    });
    return gathered;
  }

  /** Returns whether it was received. The attempt is committed first; otherwise it could be repeated without limit. */
  async #deliver(rule: Rule, row: DeliveryRow): Promise<boolean> {
    const { store, clock, log } = this.#options;
    const { jobId, event } = row;
    const fields = { jobId, event: event.type, id: event.id, target: rule.target };
    const attempts = row.attempts + 1;
    const backOffMs = Math.min(FIRST_RETRY_MS * 2 ** Math.min(row.attempts, 20), MAX_RETRY_MS);
    const tried = { ...row, attempts, dueAt: clock.now() + backOffMs };
    store.transaction(() => this.#saveIfThere(tried));
    this.#failure = undefined;
    try {
      await send(rule, event, this.#options, this.#stop.signal);
    } catch (thrown) {
      const error = asJobtailError(thrown);
      if (error.code === 'aborted') return false;
      const isGivenUp = attempts >= MAX_ATTEMPTS;
      const dueAt = isGivenUp ? null : clock.now() + Math.max(backOffMs, error.retryAfterMs ?? 0);
      store.transaction(() => this.#saveIfThere({ ...tried, dueAt, lastError: error.message }));
      const detail = { ...fields, attempts, code: error.code, err: error.message, hint: error.hint };
      if (isGivenUp) log.error(detail, 'notification given up');
      else if (!this.#failing.has(rule)) log.warn(detail, 'notification failed');
      this.#failing.add(rule);
      return false;
    }
    store.transaction(() => store.outbox.remove(row));
    log.info(fields, 'notification delivered');
    this.#failing.delete(rule);
    return true;
  }

  /** Another agent may own the job with its deliveries by now. */
  #saveIfThere(row: DeliveryRow): void {
    const { outbox, jobs } = this.#options.store;
    if (row.jobId === null || jobs.get(row.jobId) !== undefined) outbox.save(row);
  }
}
