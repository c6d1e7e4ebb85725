/** When is what due: one timer for everything, and the next one found without looking at the others. */
import { Heap } from 'heap-js';
import type { Clock } from '../../system/clock.ts';

/** Has something to do at times of its own. */
export interface Scheduled {
  /** When that is next, by the clock that only goes forward; infinite if never. */
  readonly nextDue: number;
  /** Begins what is due. */
  startDue(now: number): void;
}

interface Entry {
  readonly at: number;
  readonly one: Scheduled;
}

interface Turn {
  readonly everyMs: number;
  readonly callback: () => void;
}

/** Timers hold at most 2^31 ms; an hour is long enough to look again. */
const LONGEST_TIMER_MS = 60 * 60_000;

export class Scheduler {
  readonly #clock: Clock;
  readonly #heap = new Heap<Entry>((a, b) => a.at - b.at);
  /** The entry that counts for each one: not later than it is due. Earlier entries in the heap are passed over. */
  readonly #current = new Map<Scheduled, Entry>();
  #cancelTimer: (() => void) | undefined;
  /** When the timer goes off. */
  #armedFor = Number.POSITIVE_INFINITY;
  #turn: Turn | undefined;
  #stopped = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes note that one may be due earlier than it was. */
  arrange(one: Scheduled): void {
    const at = one.nextDue;
    if (at >= (this.#current.get(one)?.at ?? Number.POSITIVE_INFINITY)) return;
    const entry = { at, one };
    this.#current.set(one, entry);
    this.#heap.push(entry);
    if (at < this.#armedFor) this.#arm();
  }

  /**
   * Calls back from the loop itself, when it has begun all that was due, and at least every `everyMs`: silence means
   * that the loop no longer goes round.
   */
  onTurn(everyMs: number, callback: () => void): void {
    this.#turn = { everyMs, callback };
    this.#arm();
  }

  /** Starts nothing more. */
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
    const longestMs = this.#turn?.everyMs ?? LONGEST_TIMER_MS;
    this.#armedFor = Math.min(Math.max(now, next ?? Number.POSITIVE_INFINITY), now + longestMs);
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
