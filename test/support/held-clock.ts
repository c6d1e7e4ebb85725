/** A clock that a test moves: nothing that waits for it goes on before. */
import type { Clock } from '../../src/system/clock.ts';

interface Waiting {
  readonly at: number;
  readonly callback: () => void;
}

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** A time as steps of cases have it: `-5m`. */
export function writtenMs(text: string): number {
  const [, count, unit] = /^([+-]?\d+)(ms|s|m|h|d)$/.exec(text) ?? [];
  if (unit === undefined) throw new Error(`no time: ${text}`);
  return Number(count) * UNITS[unit as keyof typeof UNITS];
}

/** Turns of the event loop with nothing to do, after which what a timer began has come to its next wait. */
const QUIET_TURNS = 2;
/** Far beyond what a process or a connection takes on a busy machine. */
const REAL_MS = 30_000;
/** Clocks that pass time, in tests that run side by side: each waits for an immediate. */
let passing = 0;

/** Whether anything waits for the disk (`CloseReq`: a file handle that is being closed), or for an immediate. */
function isBusy(): boolean {
  const names = process.getActiveResourcesInfo();
  const immediates = names.filter((name) => name === 'Immediate').length;
  return immediates >= passing || names.some((name) => /^(?:FSReq|FileHandle|CloseReq)/.test(name));
}

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
      passing += 1;
      for (let quiet = 0; quiet < QUIET_TURNS; quiet = isBusy() ? 0 : quiet + 1)
        await new Promise((resolve) => setImmediate(resolve));
      passing -= 1;
      let next: Waiting | undefined;
      for (const one of this.#waiting) if (one.at < (next?.at ?? Number.POSITIVE_INFINITY)) next = one;
      if (next === undefined || next.at > end) break;
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
