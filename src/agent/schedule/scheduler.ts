/** When each run of each job is due: one timer for all jobs, and a heap instead of a scan. */
import { Heap } from 'heap-js';
import type { Clock } from '../../system/clock.ts';

export interface Scheduled {
  /** By the monotonic clock; infinite if never. */
  readonly nextDue: number;
  startDue(now: number): void;
}

interface Entry {
  readonly at: number;
  /** Grows: of several that are due at the same time, the first arranged one starts first. */
  readonly number: number;
  readonly one: Scheduled;
}

/** Timers have a limit of 2^31 ms; each is set again after an hour. */
const MAX_TIMER_MS = 60 * 60_000;

export class Scheduler {
  readonly #clock: Clock;
  readonly #heap = new Heap<Entry>((a, b) => a.at - b.at || a.number - b.number);
  #entries = 0;
  /** The valid entry of each; others in the heap are stale and skipped. */
  readonly #current = new Map<Scheduled, Entry>();
  #cancelTimer: (() => void) | undefined;
  #armedFor = Number.POSITIVE_INFINITY;
  #turn: { readonly everyMs: number; readonly callback: () => void } | undefined;
  #stopped = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Reschedules one that is due earlier than before. */
  arrange(one: Scheduled): void {
    const at = one.nextDue;
    if (at >= (this.#current.get(one)?.at ?? Number.POSITIVE_INFINITY)) return;
    const entry = { at, number: this.#entries++, one };
    this.#current.set(one, entry);
    this.#heap.push(entry);
    if (at < this.#armedFor) this.#arm();
  }

  /** Calls back when all due runs have started, and at least every `everyMs`: no call means that the loop is stuck. */
  onTurn(everyMs: number, callback: () => void): void {
    this.#turn = { everyMs, callback };
    this.#arm();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelTimer?.();
  }

  #arm(): void {
    this.#cancelTimer?.();
    this.#armedFor = Number.POSITIVE_INFINITY;
    const next = this.#heap.peek()?.at;
    if (this.#stopped || (next === undefined && this.#turn === undefined)) return;
    const now = this.#clock.monotonic();
    const maxMs = this.#turn?.everyMs ?? MAX_TIMER_MS;
    this.#armedFor = Math.min(Math.max(now, next ?? Number.POSITIVE_INFINITY), now + maxMs);
    this.#cancelTimer = this.#clock.timer(this.#armedFor - now, () => this.#startDue());
  }

  #startDue(): void {
    const now = this.#clock.monotonic();
    for (let entry = this.#heap.peek(); entry !== undefined && entry.at <= now; entry = this.#heap.peek()) {
      this.#heap.pop();
      if (this.#current.get(entry.one) !== entry) continue;
      this.#current.delete(entry.one);
      if (entry.one.nextDue <= now) entry.one.startDue(now);
      this.arrange(entry.one);
    }
    this.#turn?.callback();
    this.#arm();
  }
}
