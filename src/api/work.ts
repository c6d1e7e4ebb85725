/** What each route does: the same as the command, with the same JSON. */
import { setTimeout as sleep } from 'node:timers/promises';
import PQueue from 'p-queue';
import * as v from 'valibot';
import type { PassSummary } from '../agent/pass/complete-pass.ts';
import type { Verification } from '../agent/pass/verification.ts';
import { askAgent, passRequest } from '../cli/ask-agent.ts';
import { reportsOf, requireJob } from '../cli/job-service.ts';
import { firstPaths, register, watchReport } from '../cli/register.ts';
import { endOf, waitReport } from '../cli/show/ends.ts';
import { deliveryList, listedJobs, resultList } from '../cli/show/lists.ts';
import { verificationReport } from '../cli/show/pass.ts';
import { endedIn, jobIn, reportOf, type Surroundings, type WantedJobs } from '../cli/show/status-report.ts';
import type { Config } from '../config/config.ts';
import { notWatched, requireWatched, type SharedState, watchIfConfigured } from '../daemon/state.ts';
import { JobtailError } from '../errors.ts';
import { type JobId, LIVE_FILE_NAMES, parseJobId, parseTaskId } from '../job.ts';
import type { WatchRequest } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import type { EventFeed } from './events.ts';

/** What the routes use. */
export interface ApiParts {
  readonly config: Config;
  /** The state, beside the agent that owns it. */
  readonly state: SharedState;
  readonly feed: EventFeed;
  readonly surroundings: () => Promise<Surroundings>;
  /** Receives errors that should not happen. */
  readonly onFailure: (error: unknown) => void;
}

const TICK_MS = 500;
/** Limit for the tasks and mirrors of a job that is watched. */
const FIRST_FILES_MS = 10_000;
/** Requests of a kind at a time: each makes calls of the agent, which it needs for its jobs. */
const MAX_AT_A_TIME = 4;
const MAX_TASKS = 1_000;

export async function statusOf({ config, state, surroundings }: ApiParts, wanted: WantedJobs) {
  const missing = typeof wanted === 'object' && wanted.find((id) => jobIn(config, state.store, id) === undefined);
  if (missing) throw notWatched(missing);
  return { ...reportOf(config, state.store, wanted), ...(await surroundings()) };
}

export const resultsOf = ({ config, state }: ApiParts, jobId: JobId) => resultList(config, state.store, jobId);

export const notifications = ({ config, state }: ApiParts) => deliveryList(config, state.store);

interface LongPoll {
  readonly seconds: number;
  readonly signal: AbortSignal;
}

export async function waitFor({ config, state }: ApiParts, jobId: JobId, { seconds, signal }: LongPoll) {
  for (const endsAt = performance.now() + seconds * 1_000; ; await sleep(TICK_MS, undefined, { signal })) {
    const job = endedIn(config, state.store, jobId);
    const end = job && endOf(job, { hasMirrors: true });
    if (end !== undefined) return waitReport([end], false, []);
    if (state.store.jobs.get(jobId) === undefined) throw notWatched(jobId);
    if (performance.now() >= endsAt) return waitReport([], true, [jobId]);
  }
}

const newQueue = () => new PQueue({ concurrency: MAX_AT_A_TIME });
const QUEUES = { verification: newQueue(), reports: newQueue(), passes: newQueue(), newJobs: newQueue() };

/** Runs when there is a place among those of its kind. A client that goes away gives up its place. @throws JobtailError */
function atATime<T>(what: keyof typeof QUEUES, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  return QUEUES[what].add(work, { signal });
}

interface WantedVerification {
  readonly isComplete: boolean;
  readonly signal: AbortSignal;
}

export const verify = ({ config }: ApiParts, jobId: JobId, { isComplete, signal }: WantedVerification) =>
  atATime('verification', signal, async () => {
    const kind = isComplete ? 'verify-complete' : 'verify';
    const request = { kind, jobId, prepare: (store: Store) => void requireWatched(store, jobId) } as const;
    return verificationReport(jobId, answered(await askAgent<Verification>(config, request, signal)));
  });

export const reported = ({ config, state }: ApiParts, signal: AbortSignal) =>
  atATime('reports', signal, async () => {
    const jobs = await reportsOf(config, null, signal);
    return { jobs: listedJobs(jobs, state.store.jobs.states()) };
  });

const passOf = ({ config }: ApiParts, jobId: JobId, kind: 'sync' | 'unwatch', signal: AbortSignal) =>
  atATime('passes', signal, async () =>
    answered(await askAgent<{ readonly summary: PassSummary }>(config, passRequest(config, jobId, kind), signal)),
  );

export async function sync(parts: ApiParts, jobId: JobId, signal: AbortSignal) {
  return { jobId, ...(await passOf(parts, jobId, 'sync', signal)).summary };
}

export async function unwatch(parts: ApiParts, jobId: JobId, signal: AbortSignal) {
  return { jobId, state: 'ended', pass: (await passOf(parts, jobId, 'unwatch', signal)).summary };
}

export function endNow({ config, state }: ApiParts, jobId: JobId) {
  watchIfConfigured(state.store, config, jobId);
  state.store.jobs.unwatch(jobId, 'ended');
  state.store.wake();
  return { jobId, state: 'ended', pass: null };
}

/** The agent stops at this moment: it responds to no request any more. */
function answered<T>(answer: T | undefined): T {
  if (answer === undefined) throw new JobtailError('unavailable', 'the agent stops', { hint: 'ask again' });
  return answer;
}

/** Of a number that is written as text, because it has 64 bits. */
const idOf = <Id extends string>(parse: (text: string) => Id | undefined, what: string) =>
  v.pipe(
    v.string(),
    v.rawTransform<string, Id>(({ dataset, addIssue, NEVER }) => {
      const found = parse(dataset.value);
      if (found !== undefined) return found;
      addIssue({ message: `expected ${what} as text` });
      return NEVER;
    }),
  );

/** Two weeks. */
const MAX_STALL_MINUTES = 20_160;

const bodySchema = v.strictObject({
  jobId: idOf(parseJobId, 'a job id'),
  tasks: v.nullish(v.pipe(v.array(idOf(parseTaskId, 'a task id')), v.minLength(1), v.maxLength(MAX_TASKS)), null),
  files: v.nullish(v.pipe(v.array(v.picklist(LIVE_FILE_NAMES)), v.minLength(1)), [...LIVE_FILE_NAMES]),
  results: v.nullish(v.boolean(), true),
  stallAfterMinutes: v.nullish(v.pipe(v.number(), v.minValue(1), v.maxValue(MAX_STALL_MINUTES))),
});

/** A job is followed with the rights of the agent's account alone: the service gets no other one. */
export async function watch({ config, state }: ApiParts, body: unknown, signal: AbortSignal) {
  const found = v.safeParse(bodySchema, body);
  if (!found.success) throw new JobtailError('usage', `the body: ${v.summarize(found.issues)}`);
  const { jobId, tasks, files, results, stallAfterMinutes } = found.output;
  const request: WatchRequest = {
    ...{
      jobId,
      tasks: tasks && [...new Set(tasks)],
      files: [...new Set(files)],
      settleAfterMs: null,
      source: 'command',
    },
    results: results && config.results.enabled,
    ...(stallAfterMinutes == null ? {} : { stallAfterMs: Math.round(stallAfterMinutes * 60_000) }),
  };
  if (state.store.jobs.get(jobId) === undefined || request.tasks !== null)
    await atATime('newJobs', signal, () => requireJob(config, request, signal));
  const { store } = state;
  register(store, request);
  const registered = { config, store, request, isFollowed: true };
  return watchReport(
    registered,
    await firstPaths(registered, { endsAt: performance.now() + FIRST_FILES_MS, signal, waits: true }),
  );
}
