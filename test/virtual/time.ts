/** Simulated time: one queue of all that waits. What is due next runs when nothing else can, in a fixed order. */
import { Heap } from 'heap-js';
import type { Clock } from '../../src/system/clock.ts';

interface Waiting {
  at: number;
  readonly order: number;
  readonly process: SimulatedProcess;
  readonly callback: () => void;
  isCancelled: boolean;
}

/** What runs as one process: with its end, all that it waits for is dropped. */
export class SimulatedProcess {
  isAlive = true;
  /** Timers that are set. */
  timers = 0;
  /** Stopped until then, as by SIGSTOP: the clocks go on. */
  stoppedUntil = 0;
  /** Its machine slept for so long: only the wall clock went on. */
  asleepMs = 0;
  /** Its wall clock was set so far ahead of that of the cluster. */
  wallAheadMs = 0;
}

/** So much may happen at one moment: more is a loop that does not end. */
const MAX_AT_ONE_MOMENT = 20_000;
const MIN_DELAY_MS = 1e-6;

export class SimulatedTime {
  readonly #waiting = new Heap<Waiting>((a, b) => a.at - b.at || a.order - b.order);
  readonly #settle: () => Promise<void>;
  /** Called after each event; what it throws ends the run. */
  onEvent: () => void = () => {};
  #orders = 0;
  #passedMs = 0;
  #wallMs: number;
  #atThisMoment = 0;
  /** Whose event takes place. */
  current: SimulatedProcess | undefined;

  /** `settle` resolves when nothing goes on without time. */
  constructor(settle: () => Promise<void>, wallMs = Date.UTC(2026, 10, 5)) {
    this.#settle = settle;
    this.#wallMs = wallMs;
  }

  /** Since the beginning, by the clock that only goes forward. */
  get passedMs(): number {
    return this.#passedMs;
  }

  get wallMs(): number {
    return Math.floor(this.#wallMs + this.#passedMs);
  }

  /** The wall clock is set; timers and the other clock go on as before. */
  stepWall(byMs: number): void {
    this.#wallMs += byMs;
  }

  clockOf(process: SimulatedProcess): Clock {
    return {
      now: () => this.wallMs + Math.round(process.wallAheadMs),
      monotonic: () => this.#passedMs - process.asleepMs,
      timer: (delayMs, callback) => this.#timer(process, delayMs, callback),
    };
  }

  /** A process that was stopped goes on now. */
  resume(process: SimulatedProcess): void {
    if (process.stoppedUntil <= this.#passedMs) return;
    process.stoppedUntil = this.#passedMs;
    const waiting = this.#waiting.toArray();
    for (const one of waiting) if (one.process === process) one.at = Math.min(one.at, this.#passedMs);
    this.#waiting.init(waiting);
  }

  /** Lets time pass up to a moment, and all that is due until then take place. */
  async passUntil(at: number): Promise<void> {
    for (;;) {
      await this.#settle();
      const next = this.#next();
      if (next === undefined || next.at > at) break;
      this.#waiting.pop();
      next.isCancelled = true;
      next.process.timers -= 1;
      this.current = next.process;
      if (next.at > this.#passedMs) this.#atThisMoment = 0;
      this.#passedMs = Math.max(this.#passedMs, next.at);
      this.#atThisMoment += 1;
      if (this.#atThisMoment > MAX_AT_ONE_MOMENT)
        throw new Error(`more than ${MAX_AT_ONE_MOMENT} events at the moment ${this.#passedMs}`);
      next.callback();
      this.onEvent();
    }
    this.#passedMs = Math.max(this.#passedMs, at);
  }

  /** Until what is due next; undefined if nothing waits. */
  get nextMs(): number | undefined {
    const next = this.#next();
    return next && next.at - this.#passedMs;
  }

  async pass(ms: number): Promise<void> {
    await this.passUntil(this.#passedMs + ms);
  }

  /** Lets time pass until the promise is settled; undefined if its process ends before. */
  async passWhile<T>(promise: Promise<T>, maxMs: number, process: SimulatedProcess): Promise<T | undefined> {
    let isSettled = false;
    const settled = () => {
      isSettled = true;
    };
    promise.then(settled, settled);
    await this.#settle();
    for (const end = this.#passedMs + maxMs; !isSettled; await this.pass(250)) {
      if (!process.isAlive) return undefined;
      if (this.#passedMs > end) throw new Error(`not over after ${maxMs} ms`);
    }
    return await promise;
  }

  #next(): Waiting | undefined {
    for (let next = this.#waiting.peek(); next !== undefined; next = this.#waiting.peek()) {
      const isDue = next.at >= next.process.stoppedUntil;
      if (!next.isCancelled && next.process.isAlive && isDue) return next;
      this.#waiting.pop();
      if (isDue || next.isCancelled || !next.process.isAlive) continue;
      next.at = next.process.stoppedUntil;
      this.#waiting.push(next);
    }
    return undefined;
  }

  #timer(process: SimulatedProcess, delayMs: number, callback: () => void): () => void {
    if (Number.isNaN(delayMs)) throw new Error('a timer that is not a number');
    // What is left of rounding is no delay: it would be due again and again.
    const at = this.#passedMs + (delayMs > 0 ? Math.max(MIN_DELAY_MS, delayMs) : 0);
    const waiting: Waiting = { at, order: this.#orders++, process, callback, isCancelled: false };
    if (at < Number.POSITIVE_INFINITY) this.#waiting.push(waiting);
    process.timers += 1;
    return () => {
      if (!waiting.isCancelled) process.timers -= 1;
      waiting.isCancelled = true;
    };
  }
}
