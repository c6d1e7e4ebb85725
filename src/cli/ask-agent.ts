/** Requests to the running agent in its state, and its answers. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../config/config.ts';
import { sharedStoreIfReadable } from '../daemon/state.ts';
import { ERROR_POLICIES, type ErrorCode, JobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import { lockHolder } from '../store/lock.ts';
import type { ServiceRequestRow } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import { systemClock } from '../system/clock.ts';

const TICK_MS = 100;
/** Ticks between two checks of the agent's lock; each opens a file. */
const TICKS_A_LIFE_SIGN = 10;
/**
 * Consecutive failed checks that mean that the agent stopped: an agent that reloads its configuration releases the lock
 * for a moment.
 */
const MISSING_LIFE_SIGNS = 2;

interface Refused {
  readonly error: string;
  readonly code?: string;
  readonly hint?: string | undefined;
}

/** @throws JobtailError what the agent answers as an error */
export function resultOf<T extends object>(answer: T | Refused): T {
  if (!('error' in answer)) return answer;
  const { error, code = '', hint } = answer;
  throw new JobtailError(code in ERROR_POLICIES ? (code as ErrorCode) : 'job-unknown', error, { hint });
}

/** Undefined if the agent stopped before. `read` returns the answer once it is there. */
async function answerOfAgent<T>(
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

interface PendingRequest {
  readonly store: Store;
  readonly requestId: number;
  readonly jobId: JobId;
  readonly onWait?: () => void;
}

/** What the running agent answers to a request about a job. @throws JobtailError, also if the agent stops before */
export async function answerToRequest<T extends object>(
  config: Config,
  { store, requestId, jobId, onWait = () => {} }: PendingRequest,
  signal: AbortSignal,
): Promise<T> {
  store.wake();
  const read = () => {
    const answer = store.requests.get(requestId)?.answer ?? undefined;
    if (answer === undefined) onWait();
    return answer;
  };
  const text = await answerOfAgent(config, read, signal);
  if (text !== undefined) return resultOf(JSON.parse(text) as T | Refused);
  throw new JobtailError('store', `the agent stopped before it was done with job ${jobId}`, {
    hint: 'run the command again',
  });
}

interface AgentRequest {
  readonly kind: ServiceRequestRow['kind'];
  readonly jobId: JobId | null;
  /** Whether the agent can answer, by its state. */
  readonly isForIt?: (store: Store) => boolean;
}

/**
 * What the running agent answers, whose calls and limits the request shares; undefined if none runs here, or it stops.
 * @throws JobtailError what the agent answers as an error
 */
export async function askRunningAgent<T extends object>(
  config: Config,
  { kind, jobId, isForIt = () => true }: AgentRequest,
  signal: AbortSignal,
): Promise<T | undefined> {
  if (lockHolder(config.state.directory) === undefined) return undefined;
  const store = sharedStoreIfReadable(config);
  if (store === undefined) return undefined;
  const { requests } = store;
  let requestId: number | undefined;
  try {
    if (!isForIt(store)) return undefined;
    const added = requests.add(jobId, kind, systemClock.now());
    requestId = added;
    store.wake();
    const text = await answerOfAgent(config, () => requests.get(added)?.answer ?? undefined, signal);
    return text === undefined ? undefined : resultOf(JSON.parse(text) as T | Refused);
  } finally {
    if (requestId !== undefined) requests.remove(requestId);
    // An interrupted request is stopped.
    if (signal.aborted) store.wake();
    store.close();
  }
}
