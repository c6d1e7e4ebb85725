/** Scripts that may run for so long, and no longer, whatever they are. */
import fs from 'node:fs';

/** A machine that gives its time to others ends a script that has had none of it: so often it is tried again. */
const MOST_TRIES = 20;

/**
 * What `run` returns, which runs a script of `node:vm` with this timeout; undefined if it takes more than `mostMs` of the
 * processor, for the clock goes on where a busy machine lets the thread wait.
 * @throws what `run` throws
 */
export function withinProcessorTime<T>(mostMs: number, run: (timeout: number) => T): T | undefined {
  const before = threadMs();
  for (let tries = 0; tries < MOST_TRIES && threadMs() - before < mostMs; tries++) {
    try {
      return run(mostMs);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
    }
  }
  return undefined;
}

/** Processor time of this thread so far (`schedstat` of the kernel); where it is not counted, the clock. */
function threadMs(): number {
  try {
    return Number(fs.readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ')[0]) / 1e6;
  } catch {
    return performance.now();
  }
}
