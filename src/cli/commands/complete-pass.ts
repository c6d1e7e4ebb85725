/** A complete pass over a job: by the running agent, or right here while none runs. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { PassSummary } from '../../agent/pass/complete-pass.ts';
import type { PassAnswer } from '../../agent/pass/requested-passes.ts';
import type { Config } from '../../config/config.ts';
import { commandLog } from '../../daemon/log.ts';
import { type OwnedStore, openSharedStore, openUnlessAgentRuns, requireWatched } from '../../daemon/state.ts';
import { ERROR_POLICIES, type ErrorCode, JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import { lockHolder } from '../../store/lock.ts';
import { type ResultsProgress, resultsProgress } from '../show/results-progress.ts';
import { stopSignals } from '../stop-signals.ts';

export interface PassOrder {
  readonly jobId: JobId;
  readonly kind: 'sync' | 'unwatch';
}

interface WatchedPass extends PassOrder {
  readonly progress: ResultsProgress;
}

const LOOK_MS = 100;
/** Every so many looks it is made sure that the agent lives, which opens a file. */
const LOOKS_A_LIFE_SIGN = 10;

/** Has one complete pass done. The kind `unwatch` ends the job with it. */
export async function passOver(config: Config, order: PassOrder): Promise<PassSummary> {
  const stopping = stopSignals();
  const progress = resultsProgress(process.stderr);
  const watched = { ...order, progress };
  try {
    const owned = openUnlessAgentRuns(config, commandLog());
    if (owned === undefined) return await askAgent(config, watched, stopping.signal);
    try {
      return await passHere({ config, ...watched, owned, signal: stopping.signal });
    } finally {
      owned.close();
    }
  } finally {
    progress.close();
    stopping.dispose();
  }
}

async function askAgent(
  config: Config,
  { jobId, kind, progress }: WatchedPass,
  signal: AbortSignal,
): Promise<PassSummary> {
  const store = openSharedStore(config);
  try {
    requireWatched(store, jobId);
    const askedAt = Date.now();
    const requestId = store.transaction(() => {
      if (kind === 'unwatch') store.jobs.unwatch(jobId, 'ending');
      return store.requests.add(jobId, kind, askedAt);
    });
    store.wake();
    for (let looks = 1; ; looks += 1) {
      await sleep(LOOK_MS, undefined, { signal }).catch(() => {
        throw new JobtailError('aborted', 'it was stopped');
      });
      // Before the answer is looked for: it may be the last thing that the agent does.
      const lives = looks % LOOKS_A_LIFE_SIGN !== 0 || lockHolder(config.state.directory) !== undefined;
      const answer = store.requests.get(requestId)?.answer;
      if (typeof answer === 'string') return summaryOf(JSON.parse(answer) as PassAnswer);
      const pass = store.resultSyncs.get(jobId);
      if (pass !== undefined && pass.startedAt >= askedAt) progress.show(pass);
      if (!lives) {
        throw new JobtailError('store', 'the agent that was asked has stopped', { hint: 'say the command again' });
      }
    }
  } finally {
    store.close();
  }
}

function summaryOf(answer: PassAnswer): PassSummary {
  if ('summary' in answer) return answer.summary;
  const code = answer.code !== undefined && answer.code in ERROR_POLICIES ? (answer.code as ErrorCode) : 'job-unknown';
  throw new JobtailError(code, answer.error, answer.hint === undefined ? {} : { hint: answer.hint });
}

interface PassHere extends WatchedPass {
  readonly config: Config;
  readonly owned: OwnedStore;
  readonly signal: AbortSignal;
}

async function passHere({ config, owned, jobId, kind, progress, signal }: PassHere): Promise<PassSummary> {
  const { store, transfers } = owned;
  requireWatched(store, jobId);
  // Who asks a running agent needs none of it.
  const [{ buildEngine, connect }, { completePass }] = await Promise.all([
    import('../../daemon/compose.ts'),
    import('../../agent/pass/complete-pass.ts'),
  ]);
  const log = commandLog();
  if (kind === 'unwatch') store.jobs.unwatch(jobId, 'ending');
  const connection = await connect(config, log, { secrets: transfers.secrets });
  try {
    const { polls, pass } = buildEngine({
      ...{ config, store, transfers, log },
      remote: connection.remote,
      onProgress: (row) => progress.show(row),
    });
    const summary = await completePass(polls(jobId), pass(signal));
    if (kind === 'unwatch') store.jobs.unwatch(jobId, 'ended');
    return summary;
  } finally {
    await transfers.endAll(connection.remote, signal);
    await connection.close();
  }
}
