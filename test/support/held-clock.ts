/** A clock that a test moves: nothing that waits for it goes on before. */
import type { Clock } from '../../src/system/clock.ts';

interface Waiting {
  readonly at: number;
  readonly callback: () => void;
}

/** Turns of the event loop in which what a timer began comes to its next wait, unless it waits for the disk. */
const TURNS = 20;
/** Far beyond what a process or a connection takes on a busy machine. */
const REAL_MS = 30_000;
/** `CloseReq`: a file handle that is being closed. */
const waitsForDisk = () => process.getActiveResourcesInfo().some((name) => /^(?:FSReq|FileHandle|CloseReq)/.test(name));

export class HeldClock implements Clock {
  readonly #start: number;
  readonly #waiting = new Set<Waiting>();
  #passed = 0;
  /** By how much the wall clock was set. */
  #stepMs = 0;

  constructor(start = Date.UTC(2026, 10, 5)) {
    this.#start = start;
  }

  // Bound, for some who use it take single functions out of it.
  readonly now = (): number => this.#start + this.#stepMs + Math.floor(this.#passed);

  /** Sets the wall clock, as an operator or NTP does; nothing else moves. */
  stepWall(ms: number): void {
    this.#stepMs += ms;
  }

  readonly monotonic = (): number => this.#passed;

  readonly timer = (delayMs: number, callback: () => void): (() => void) => {
    const waiting = { at: this.#passed + Math.max(0, delayMs), callback };
    this.#waiting.add(waiting);
    return () => void this.#waiting.delete(waiting);
  };

  /** Timers that were neither due nor cancelled. */
  get timers(): number {
    return this.#waiting.size;
  }

  /** Moves on, timer by timer, and lets what they begin have a few turns. */
  async pass(ms: number): Promise<void> {
    const end = this.#passed + ms;
    for (;;) {
      // The question costs more than a turn: it is put at every second one.
      for (let turn = 1; turn <= TURNS; turn = turn % 2 === 0 && waitsForDisk() ? 1 : turn + 1)
        await new Promise((resolve) => setImmediate(resolve));
      const [next] = [...this.#waiting].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at);
      if (next === undefined) break;
      this.#waiting.delete(next);
      this.#passed = Math.max(this.#passed, next.at);
      next.callback();
    }
    this.#passed = end;
  }

  /** Moves on until the promise is settled. */
  async passWhile<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false;
    const settled = () => {
      isSettled = true;
    };
    promise.then(settled, settled);
    while (!isSettled) {
      const next = Math.min(...[...this.#waiting].map(({ at }) => at)) - this.#passed;
      await this.pass(Number.isFinite(next) ? Math.min(1_000, next) : 100);
    }
    return await promise;
  }

  /** Moves on until `look` is true: for `maxMs`, or, without that, for a real while. Processes and connections do not wait for this clock. */
  async passUntil(what: string, look: () => boolean, maxMs?: number): Promise<void> {
    const realEnd = performance.now() + REAL_MS;
    for (const end = this.#passed + (maxMs ?? 0); !look(); await this.pass(1_000)) {
      if (maxMs === undefined ? performance.now() < realEnd : this.#passed < end) continue;
      throw new Error(`${maxMs === undefined ? 'a while' : `${maxMs / 1_000} s`} passed in vain for ${what}`);
    }
  }
}
