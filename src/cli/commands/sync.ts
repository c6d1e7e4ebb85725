/** `agent sync JOB` and `agent unwatch JOB`: a complete pass by the running agent, or in this process if none runs. */
import type { PassSummary } from '../../agent/pass/complete-pass.ts';
import { type Config, hasFleet } from '../../config/config.ts';
import { withStore } from '../../daemon/own-state.ts';
import { watchIfConfigured } from '../../daemon/state.ts';
import { asJobtailError, EXIT } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import type { Store } from '../../store/store.ts';
import { askRunningAgent } from '../ask-agent.ts';
import { type ConfigOption, configurationAsOwner, type JsonOption } from '../configuration.ts';
import { commandLog, untilStopped } from '../process.ts';
import { jsonReport } from '../show/json.ts';
import { type ResultsProgress, resultsProgress, summaryIsWhole, summaryText } from '../show/pass.ts';

export async function sync(jobId: JobId, options: JsonOption): Promise<void> {
  const config = await configurationAsOwner(options);
  const summary = await runCompletePass(config, jobId, 'sync');
  process.stdout.write(options.json === true ? jsonReport({ jobId, ...summary }) : summaryText(jobId, summary));
  if (!summaryIsWhole(summary)) process.exitCode = EXIT.failed;
}

export async function unwatch(jobId: JobId, options: ConfigOption & { readonly now?: boolean }): Promise<void> {
  const config = await configurationAsOwner(options);
  if (options.now === true) await endNow(config, jobId);
  else await endWithPass(config, jobId);
  process.stdout.write(`job ${jobId} is followed no longer; its files stay in ${config.mirror.directory}/${jobId}\n`);
  if (config.watch.some(({ job }) => job === jobId)) {
    process.stdout.write(
      `${config.file} still lists it: the agent does not follow it until you run agent watch ${jobId}\n`,
    );
  }
}

async function endWithPass(config: Config, jobId: JobId): Promise<void> {
  try {
    const summary = await runCompletePass(config, jobId, 'unwatch');
    process.stdout.write(summaryText(jobId, summary));
    if (!summaryIsWhole(summary)) process.exitCode = EXIT.failed;
  } catch (thrown) {
    // If the service has no such job, the last pass can never succeed, and the job would stay in the list.
    if (!asJobtailError(thrown).policy.isRefusal) throw thrown;
    const { isNoJob } = await import('../job-service.ts');
    if (!(await isNoJob(config, jobId))) throw thrown;
    await endNow(config, jobId);
    process.stdout.write(`the service has no job ${jobId}: there is no last pass\n`);
  }
}

async function endNow(config: Config, jobId: JobId): Promise<void> {
  if (hasFleet(config)) return (await import('../fleet/commands.ts')).endByFleet(config, jobId);
  await withStore(config, commandLog(), async (store, owned) => {
    watchIfConfigured(store, config, jobId);
    store.jobs.unwatch(jobId, 'ended');
    store.wake();
    // A running agent releases its grants itself.
    if (owned !== undefined && store.leases.allOpen().length > 0)
      await (await import('../own-engine.ts')).endGrants(config, owned, new AbortController().signal);
  });
}

type Kind = 'sync' | 'unwatch';

/** Runs one complete pass, here or by the running agent. The kind `unwatch` ends the job with it. */
async function runCompletePass(config: Config, jobId: JobId, kind: Kind): Promise<PassSummary> {
  if (hasFleet(config)) return await (await import('../fleet/commands.ts')).passByFleet(config, jobId, kind);
  const progress = resultsProgress(process.stderr);
  try {
    return await untilStopped((signal) => passOf(config, { jobId, kind, progress, signal }));
  } finally {
    progress.close();
  }
}

interface Pass {
  readonly jobId: JobId;
  readonly kind: Kind;
  readonly progress: ResultsProgress;
  readonly signal: AbortSignal;
}

async function passOf(config: Config, pass: Pass): Promise<PassSummary> {
  const { jobId, kind, progress, signal } = pass;
  const askedAt = Date.now();
  const prepare = (store: Store) => {
    watchIfConfigured(store, config, jobId);
    if (kind === 'unwatch') store.jobs.unwatch(jobId, 'ending');
    return true;
  };
  const onWait = (store: Store) => {
    const row = store.resultSyncs.get(jobId);
    if (row !== undefined && row.startedAt >= askedAt) progress.show(row);
  };
  const request = { kind, jobId, prepare, onWait, isKept: true };
  const answer = await askRunningAgent<{ summary: PassSummary }>(config, request, signal);
  if (answer !== undefined) return answer.summary;
  // Loaded only here: a command that asks a running agent does not need these modules.
  const [{ withEngine, withOwnState }, { completePass }, { findTasks }] = await Promise.all([
    import('../own-engine.ts'),
    import('../../agent/pass/complete-pass.ts'),
    import('../job-service.ts'),
  ]);
  const onProgress = progress.show.bind(progress);
  return await withOwnState(config, async (owned) => {
    const { store } = owned;
    prepare(store);
    return await withEngine({ config, owned, onProgress, signal }, async (engine) => {
      await findTasks(jobId, { ...engine.connection, store, log: commandLog(), signal });
      const summary = await completePass(engine.polls(jobId), { ...engine.pass, isLast: kind === 'unwatch', signal });
      if (kind === 'unwatch') store.jobs.unwatch(jobId, 'ended');
      return summary;
    });
  });
}
