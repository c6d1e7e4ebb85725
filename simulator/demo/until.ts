/** Waits for conditions of processes and files. */
import { setTimeout as sleep } from 'node:timers/promises';
import { JobtailError } from '../../src/errors.ts';

const TICK_MS = 50;

interface UntilOptions {
  /** What is waited for, to end the sentence "it took too long until ...". */
  readonly what: string;
  readonly limitMs: number;
  readonly signal: AbortSignal;
}

/** Looks until `probe` finds something; `timeout` after the limit, `aborted` when the signal fires. */
export async function until<T>(probe: () => T | undefined | Promise<T | undefined>, options: UntilOptions): Promise<T> {
  const { what, limitMs, signal } = options;
  const endsAt = performance.now() + limitMs;
  for (;;) {
    signal.throwIfAborted();
    const found = await probe();
    if (found !== undefined) return found;
    if (performance.now() > endsAt) {
      throw new JobtailError('timeout', `it took longer than ${Math.round(limitMs / 1000)} s until ${what}`, {
        hint: 'the machine may be too busy just now: try again',
      });
    }
    // The next check sees what the signal does to the pause.
    await sleep(TICK_MS, undefined, { signal }).catch(() => {});
  }
}
