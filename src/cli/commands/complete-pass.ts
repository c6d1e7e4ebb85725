/** A complete pass over a job: by the running agent, or right here while none runs. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { PassSummary } from '../../agent/pass/complete-pass.ts';
import type { PassAnswer } from '../../agent/pass/job-end.ts';
import { type Config, hasFleet } from '../../config/config.ts';
import { type OwnedStore, requireOrdered, withStore } from '../../daemon/state.ts';
import { JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import { lockHolder } from '../../store/lock.ts';
import type { Store } from '../../store/store.ts';
import { summaryOf } from '../pass-answer.ts';
import { commandLog, untilStopped } from '../process.ts';
import { type ResultsProgress, resultsProgress } from '../show/results-progress.ts';

export interface PassOrder {
  readonly jobId: JobId;
  readonly kind: 'sync' | 'unwatch';
}

interface Pass extends PassOrder {
  readonly config: Config;
  readonly store: Store;
  readonly progress: ResultsProgress;
  readonly signal: AbortSignal;
}

const LOOK_MS = 100;
/** Every so many looks it is made sure that the agent lives, which opens a file. */
const LOOKS_A_LIFE_SIGN = 10;
/** So many in a row are missing if it has stopped: one that begins anew, with another configuration, lets go for a moment. */
const MISSING_LIFE_SIGNS = 2;

/** Has one complete pass done. The kind `unwatch` ends the job with it. */
export async function passOver(config: Config, order: PassOrder): Promise<PassSummary> {
  if (hasFleet(config)) {
    const { passByFleet } = await import('../fleet/orders.ts');
    return await passByFleet(config, order.jobId, order.kind);
  }
  const progress = resultsProgress(process.stderr);
  try {
    return await withStore(config, commandLog(), (store, owned) =>
      untilStopped((signal) => {
        const pass = { config, store, ...order, progress, signal };
        return owned === undefined ? askAgent(pass) : passHere(pass, owned);
      }),
    );
  } finally {
    progress.close();
  }
}

async function askAgent({ config, store, jobId, kind, progress, signal }: Pass): Promise<PassSummary> {
  requireOrdered(store, config, jobId);
  const askedAt = Date.now();
  const requestId = store.transaction(() => {
    if (kind === 'unwatch') store.jobs.unwatch(jobId, 'ending');
    return store.requests.add(jobId, kind, askedAt);
  });
  store.wake();
  for (let looks = 1, missing = 0; ; looks += 1) {
    await sleep(LOOK_MS, undefined, { signal }).catch(() => {
      throw new JobtailError('aborted', 'it was stopped');
    });
    // Before the answer is looked for: it may be the last thing that the agent does.
    if (looks % LOOKS_A_LIFE_SIGN === 0) missing = lockHolder(config.state.directory) === undefined ? missing + 1 : 0;
    const answer = store.requests.get(requestId)?.answer;
    if (typeof answer === 'string') return summaryOf(JSON.parse(answer) as PassAnswer);
    const pass = store.resultSyncs.get(jobId);
    if (pass !== undefined && pass.startedAt >= askedAt) progress.show(pass);
    if (missing >= MISSING_LIFE_SIGNS) {
      throw new JobtailError('store', 'the agent that was asked has stopped', { hint: 'say the command again' });
    }
  }
}

async function passHere(
  { config, store, jobId, kind, progress, signal }: Pass,
  { transfers }: OwnedStore,
): Promise<PassSummary> {
  requireOrdered(store, config, jobId);
  // Who asks a running agent needs none of it.
  const [{ buildEngine }, { connect }, { completePass }, { findTasks }] = await Promise.all([
    import('../../daemon/compose.ts'),
    import('../../daemon/connection.ts'),
    import('../../agent/pass/complete-pass.ts'),
    import('../find-tasks.ts'),
  ]);
  const log = commandLog();
  if (kind === 'unwatch') store.jobs.unwatch(jobId, 'ending');
  const connection = await connect(config, log, { secrets: transfers.secrets, habits: store.habits });
  try {
    await findTasks(jobId, { ...connection, store, log, signal });
    const { polls, pass } = buildEngine({
      ...{ config, store, transfers, log },
      remote: connection.remote,
      jobService: connection.jobService,
      share: connection.share,
      onProgress: (row) => progress.show(row),
    });
    const summary = await completePass(polls(jobId), { ...pass(signal), isLast: kind === 'unwatch' });
    if (kind === 'unwatch') store.jobs.unwatch(jobId, 'ended');
    return summary;
  } finally {
    await transfers.endAll(connection.remote, signal);
    await connection.close();
  }
}
