/** The machine's time. */
import { JobtailError } from '../errors.ts';

/** Time, so that tests can hold it. */
export interface Clock {
  /** Wall clock, in milliseconds since 1970: for what is kept and shown. */
  now(): number;
  /** A clock that only goes forward, in milliseconds: for what is due. */
  monotonic(): number;
  /** Calls back after `delayMs`; the returned function takes that back. */
  timer(delayMs: number, callback: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  timer(delayMs, callback) {
    const timer = setTimeout(callback, delayMs);
    return () => clearTimeout(timer);
  },
};

/** Resolves after `delayMs`; rejects with `aborted` when the signal fires. */
export function sleep(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      cancel();
      reject(new JobtailError('aborted', 'it was stopped'));
    };
    const cancel = clock.timer(delayMs, () => {
      signal.removeEventListener('abort', stop);
      resolve();
    });
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  });
}
