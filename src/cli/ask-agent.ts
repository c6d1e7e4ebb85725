/** Requests in the state to the process that serves it, and its answers. */

import { setTimeout as sleep } from 'node:timers/promises';
import { withoutNextSignIn } from '../auth.ts';
import type { Config } from '../config/config.ts';
import { SharedState, watchIfConfigured } from '../daemon/state.ts';
import { ERROR_POLICIES, type ErrorCode, JobtailError, type RequestRefusal } from '../errors.ts';
import type { JobId } from '../job.ts';
import { RENEWED_MS } from '../store/jobs.ts';
import { lockHolder } from '../store/lock.ts';
import type { RequestRow, ServiceRequestRow, WatchRequest } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import { systemClock } from '../system/clock.ts';
import { commandLog } from './process.ts';

const TICK_MS = 100;
const TICKS_A_LIFE_SIGN = 10;
/** Failed checks that mean that it stopped: an agent that reloads its configuration is away for a moment. */
const MISSING_LIFE_SIGNS = 2;

interface PolledAnswer<T> {
  read(): T | undefined | Promise<T | undefined>;
  isThere(): boolean | Promise<boolean>;
}

/** Waits for an answer; undefined if no agent is there any more. */
export async function answerFrom<T>({ read, isThere }: PolledAnswer<T>, signal: AbortSignal): Promise<T | undefined> {
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

/** @throws JobtailError what the agent answers as an error */
export function resultOf<T extends object>(answer: T | RequestRefusal): T {
  if (!('error' in answer)) return answer;
  const { error, code = '', hint } = answer;
  throw new JobtailError(code in ERROR_POLICIES ? (code as ErrorCode) : 'job-unknown', withoutNextSignIn(error), {
    hint,
  });
}

interface AgentRequest {
  readonly kind: (RequestRow | ServiceRequestRow)['kind'];
  readonly jobId: JobId | null;
  /** Called before the request is made. @throws JobtailError if it cannot be answered */
  readonly prepare?: (store: Store) => void;
  readonly onWait?: (store: Store) => void;
}

/** One complete pass. The kind `unwatch` ends the job with it. */
export const passRequest = (config: Config, jobId: JobId, kind: 'sync' | 'unwatch'): AgentRequest => ({
  kind,
  jobId,
  prepare(store) {
    watchIfConfigured(store, config, jobId);
    if (kind === 'unwatch') store.jobs.unwatch(jobId, 'ending');
  },
});

/** Has a job followed while the command waits, also in a state that was replaced. */
export const followRequest = (request: WatchRequest): AgentRequest => ({
  kind: 'follow',
  jobId: request.jobId,
  prepare({ jobs }) {
    if (jobs.get(request.jobId) === undefined && !jobs.isForgotten(request.jobId)) jobs.watch(request, Date.now());
  },
});

/** One request in the state for as long as its command waits: renewed, and made again in a state that was replaced. */
export class PendingRequest {
  readonly #state: SharedState;
  readonly #request: AgentRequest;
  #made: { readonly store: Store; readonly requestId: number; readonly at: number } | undefined;

  constructor(state: SharedState, request: AgentRequest) {
    this.#state = state;
    this.#request = request;
  }

  /** The answer so far. Called again and again while the command waits. @throws JobtailError of `prepare` */
  renew(): string | undefined {
    const store = this.#state.ifReadable;
    if (store === undefined) return undefined;
    const { kind, jobId, prepare, onWait } = this.#request;
    const now = systemClock.monotonic();
    const made = this.#made?.store === store ? this.#made : undefined;
    const row = made && store.requests.get(made.requestId);
    if (made === undefined || row === undefined) {
      const requestId = store.transaction(() => {
        prepare?.(store);
        return store.requests.add(jobId, kind, systemClock.now());
      });
      this.#made = { store, requestId, at: now };
      store.wake();
    } else if (row.answer !== null) return row.answer;
    else if (now - made.at >= RENEWED_MS) {
      this.#made = { ...made, at: now };
      // On a full disk, the next one is soon enough.
      try {
        store.requests.renew(made.requestId, systemClock.now());
      } catch {}
    }
    onWait?.(store);
    return undefined;
  }

  /** Removes it, and what it began is stopped. */
  end(): void {
    if (this.#made === undefined) return;
    const { store, requestId } = this.#made;
    if (this.#state.ifReadable !== store) return;
    // What stays is forgotten once it is not renewed.
    try {
      store.requests.remove(requestId);
      store.wake();
    } catch {}
  }
}

/**
 * What the process that serves the state answers, whose calls and limits the request shares; undefined if none does any
 * more, or there is no state. @throws JobtailError what it answers as an error
 */
export async function askAgent<T extends object>(
  config: Config,
  request: AgentRequest,
  signal: AbortSignal,
): Promise<T | undefined> {
  const isThere = () => lockHolder(config.state.directory) !== undefined;
  const state = new SharedState(config);
  try {
    if (!isThere() || state.ifReadable === undefined) return undefined;
    return await answerTo<T>(state, request, signal, isThere);
  } finally {
    state.close();
  }
}

/** The same by this process if no other one serves the state. */
export async function askServed<T extends object>(config: Config, request: AgentRequest): Promise<T> {
  const [{ withStore }, { withServedState }] = await Promise.all([
    import('../daemon/own-state.ts'),
    import('./serve-state.ts'),
  ]);
  await withStore(config, commandLog(), (store) => store.transaction(() => request.prepare?.(store)));
  return await withServedState(config, async (state, signal) => {
    const answer = await askIn<T>(state, request, signal);
    return () => answer;
  });
}

/** In a state that this process serves if no other one does. */
export const askIn = async <T extends object>(state: SharedState, request: AgentRequest, signal: AbortSignal) =>
  (await answerTo<T>(state, request, signal)) as T;

/** Undefined if `isThere` finds no process that serves the state. @throws JobtailError what it answers as an error */
async function answerTo<T extends object>(
  state: SharedState,
  request: AgentRequest,
  signal: AbortSignal,
  isThere = () => true,
): Promise<T | undefined> {
  const pending = new PendingRequest(state, request);
  try {
    pending.renew();
    const text = await answerFrom({ read: () => pending.renew(), isThere }, signal);
    return text === undefined ? undefined : resultOf(JSON.parse(text) as T | RequestRefusal);
  } finally {
    pending.end();
  }
}
