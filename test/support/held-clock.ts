/** A clock that a test moves: nothing that waits for it goes on before. */
import { onTestFinished, vi } from 'vitest';
import { type Clock, systemClock } from '../../src/system/clock.ts';
import { SimulatedProcess, SimulatedTime } from '../virtual/time.ts';

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

/** Lets what a timer began have a few turns. */
async function settle(): Promise<void> {
  passing += 1;
  for (let quiet = 0; quiet < QUIET_TURNS; quiet = isBusy() ? 0 : quiet + 1)
    await new Promise((resolve) => setImmediate(resolve));
  passing -= 1;
}

export class HeldClock implements Clock {
  readonly #process = new SimulatedProcess();
  readonly #time: SimulatedTime;
  // Bound, for some who use it take single functions out of it.
  readonly now: Clock['now'];
  readonly monotonic: Clock['monotonic'];
  readonly timer: Clock['timer'];
  /** Sets the wall clock ahead, as an operator or NTP does; nothing else moves. */
  readonly stepWall: (ms: number) => void;
  /** Moves on, timer by timer. */
  readonly pass: (ms: number) => Promise<void>;

  constructor(start?: number) {
    const time = new SimulatedTime(settle, start);
    this.#time = time;
    ({ now: this.now, monotonic: this.monotonic, timer: this.timer } = time.clockOf(this.#process));
    this.stepWall = (ms) => time.stepWall(ms);
    this.pass = (ms) => time.pass(ms);
  }

  /** Timers that were neither due nor cancelled. */
  get timers(): number {
    return this.#process.timers;
  }

  /** Moves on until the promise is settled. */
  async passWhile<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false;
    const settled = () => {
      isSettled = true;
    };
    promise.then(settled, settled);
    while (!isSettled) await this.pass(Math.min(1_000, this.#time.nextMs ?? 100));
    return await promise;
  }

  /** Moves on until `look` is true: for `maxMs`, or, without that, for a real while. Processes and connections do not wait for this clock. */
  async passUntil(what: string, look: () => boolean, maxMs?: number): Promise<void> {
    const realEnd = performance.now() + REAL_MS;
    for (const end = this.monotonic() + (maxMs ?? 0); !look(); await this.pass(1_000)) {
      if (maxMs === undefined ? performance.now() < realEnd : this.monotonic() < end) continue;
      throw new Error(`${maxMs === undefined ? 'a while' : `${maxMs / 1_000} s`} passed in vain for ${what}`);
    }
  }
}

/** For the time of a test, each timer of the machine's clock ends at once, and its time has passed. */
export function hurry(): void {
  let aheadMs = 0;
  const { monotonic } = systemClock;
  vi.spyOn(systemClock, 'monotonic').mockImplementation(() => monotonic() + aheadMs);
  vi.spyOn(systemClock, 'timer').mockImplementation((ms, ended) => {
    aheadMs += ms;
    const timer = setImmediate(ended);
    return () => clearImmediate(timer);
  });
  onTestFinished(() => void vi.restoreAllMocks());
}
