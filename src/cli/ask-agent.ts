/** Requests to the running agent in its state, and its answers. */

import { setTimeout as sleep } from 'node:timers/promises';
import { withoutNextSignIn } from '../auth.ts';
import type { Config } from '../config/config.ts';
import { sharedStoreIfReadable } from '../daemon/state.ts';
import { ERROR_POLICIES, type ErrorCode, JobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import { lockHolder } from '../store/lock.ts';
import type { RequestRow, ServiceRequestRow } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import { systemClock } from '../system/clock.ts';

const TICK_MS = 100;
const TICKS_A_LIFE_SIGN = 10;
/** Failed checks that mean that it stopped: an agent that reloads its configuration is away for a moment. */
const MISSING_LIFE_SIGNS = 2;

interface Asked<T> {
  read(): T | undefined | Promise<T | undefined>;
  isThere(): boolean | Promise<boolean>;
}

/** Waits for an answer; undefined if no agent is there any more. */
export async function answerFrom<T>({ read, isThere }: Asked<T>, signal: AbortSignal): Promise<T | undefined> {
  for (let ticks = 1, missing = 0; missing < MISSING_LIFE_SIGNS; ticks += 1) {
    await sleep(TICK_MS, undefined, { signal }).catch(() => {
      throw new JobtailError('aborted', 'the command was interrupted');
    });
    // Before the answer is read: it may be the last action of the agent.
    if (ticks % TICKS_A_LIFE_SIGN === 0) missing = (await isThere()) ? 0 : missing + 1;
    const answer = await read();
    if (answer !== undefined) return answer;
  }
  return undefined;
}

interface Refused {
  readonly error: string;
  readonly code?: string;
  readonly hint?: string | undefined;
}

/** @throws JobtailError what the agent answers as an error */
export function resultOf<T extends object>(answer: T | Refused): T {
  if (!('error' in answer)) return answer;
  const { error, code = '', hint } = answer;
  throw new JobtailError(code in ERROR_POLICIES ? (code as ErrorCode) : 'job-unknown', withoutNextSignIn(error), {
    hint,
  });
}

interface AgentRequest {
  readonly kind: (RequestRow | ServiceRequestRow)['kind'];
  readonly jobId: JobId | null;
  /** Prepares the state; returns whether this agent can answer. */
  readonly prepare?: (store: Store) => boolean;
  readonly onWait?: (store: Store) => void;
  /** Whether the next agent executes the request, if this one stops. */
  readonly isKept?: boolean;
}

/**
 * What the running agent answers, whose calls and limits the request shares; undefined if none runs here, or it has no such
 * job. @throws JobtailError what the agent answers as an error, or that it stopped before
 */
export async function askRunningAgent<T extends object>(
  config: Config,
  { kind, jobId, prepare = () => true, onWait = () => {}, isKept = false }: AgentRequest,
  signal: AbortSignal,
): Promise<T | undefined> {
  const isThere = () => lockHolder(config.state.directory) !== undefined;
  const store = isThere() ? sharedStoreIfReadable(config) : undefined;
  if (store === undefined) return undefined;
  const { requests } = store;
  let text: string | undefined;
  let requestId: number | undefined;
  try {
    requestId = store.transaction(() => (prepare(store) ? requests.add(jobId, kind, systemClock.now()) : undefined));
    if (requestId === undefined) return undefined;
    const added = requestId;
    store.wake();
    const read = () => {
      const answer = requests.get(added)?.answer ?? undefined;
      if (answer === undefined) onWait(store);
      return answer;
    };
    text = await answerFrom({ read, isThere }, signal);
  } finally {
    if (requestId !== undefined && (text !== undefined || signal.aborted || !isKept)) requests.remove(requestId);
    // An interrupted request is stopped.
    if (signal.aborted) store.wake();
    store.close();
  }
  if (text !== undefined) return resultOf(JSON.parse(text) as T | Refused);
  const what = jobId === null ? '' : ` with job ${jobId}`;
  throw new JobtailError('store', `the agent stopped before it was done${what}`, { hint: 'run the command again' });
}
