/** Commands that wait: for the end of jobs, whose lines they print meanwhile, and for something to come true. */
import { setTimeout as sleep } from 'node:timers/promises';

const TICK_MS = 200;

interface WaitForJobs {
  readonly signal: AbortSignal;
  /** The end of the time, of the monotonic clock. */
  readonly endsAt?: number;
  readonly stateMs: number;
  /** Asked at the start, and every `stateMs`. */
  readonly isOver: () => boolean | Promise<boolean>;
  /** Writes new lines; returns whether there may be more at once. */
  readonly tick: () => boolean | Promise<boolean>;
}

/** Returns whether the jobs are over: then their last lines are still to be written. */
export async function untilOver({ signal, endsAt = Infinity, stateMs, isOver, tick }: WaitForJobs): Promise<boolean> {
  for (let askedAt = -Infinity; ; ) {
    const now = performance.now();
    if (now - askedAt >= stateMs) {
      askedAt = now;
      if (await isOver()) return true;
    }
    if (signal.aborted || now >= endsAt) return false;
    if (!(await tick()))
      await sleep(Math.min(TICK_MS, Math.max(1, endsAt - now)), undefined, { signal }).catch(() => {});
  }
}

export interface Until {
  /** Of the monotonic clock. */
  readonly endsAt: number;
  readonly signal: AbortSignal;
}

const CHECK_MS = 50;

/** Waits until `isSo`, or the end of the time. @throws AbortError when the signal fires */
export async function until(
  isSo: () => boolean | Promise<boolean>,
  { endsAt, signal }: Until,
  everyMs = CHECK_MS,
): Promise<void> {
  while (performance.now() < endsAt && !(await isSo())) await sleep(everyMs, undefined, { signal });
}
