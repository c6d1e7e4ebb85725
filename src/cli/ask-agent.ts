/** Waits for what the running agent answers to a request in its state. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../config/config.ts';
import { JobtailError } from '../errors.ts';
import { lockHolder } from '../store/lock.ts';

const TICK_MS = 100;
/** Ticks between two checks of the agent's lock; each opens a file. */
const TICKS_A_LIFE_SIGN = 10;
/**
 * Consecutive failed checks that mean that the agent stopped: an agent that reloads its configuration releases the lock
 * for a moment.
 */
const MISSING_LIFE_SIGNS = 2;

/** Undefined if the agent stopped before. `read` returns the answer once it is there. */
export async function answerOfAgent<T>(
  config: Config,
  read: () => T | undefined,
  signal: AbortSignal,
): Promise<T | undefined> {
  for (let ticks = 1, missing = 0; missing < MISSING_LIFE_SIGNS; ticks += 1) {
    await sleep(TICK_MS, undefined, { signal }).catch(() => {
      throw new JobtailError('aborted', 'the command was interrupted');
    });
    // Before the answer is read: it may be the last action of the agent.
    if (ticks % TICKS_A_LIFE_SIGN === 0) missing = lockHolder(config.state.directory) === undefined ? missing + 1 : 0;
    const answer = read();
    if (answer !== undefined) return answer;
  }
  return undefined;
}
