/** `agent sync JOB` and `agent unwatch JOB`: a complete pass by the process that serves the state. */
import type { PassSummary } from '../../agent/pass/complete-pass.ts';
import { type Config, hasFleet } from '../../config/config.ts';
import { withStore } from '../../daemon/own-state.ts';
import { watchIfConfigured } from '../../daemon/state.ts';
import { asJobtailError, EXIT } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import { jsonReport } from '../../json-report.ts';
import type { Store } from '../../store/store.ts';
import { askSocket, isOfAnother } from '../agent-socket.ts';
import { askServed, passRequest } from '../ask-agent.ts';
import { type ConfigOption, configurationAsOwner, type JsonOption } from '../configuration.ts';
import { commandLog, untilStopped } from '../process.ts';
import { resultsProgress, summaryIsWhole, summaryText } from '../show/pass.ts';

export async function sync(jobId: JobId, options: JsonOption): Promise<void> {
  const config = await configurationAsOwner(options);
  const summary = await runCompletePass(config, jobId, 'sync');
  process.stdout.write(options.json === true ? jsonReport({ jobId, ...summary }) : summaryText(jobId, summary));
  if (!summaryIsWhole(summary)) process.exitCode ||= EXIT.failed;
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
    if (!summaryIsWhole(summary)) process.exitCode ||= EXIT.failed;
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
  if (isOfAnother(config)) return void (await askSocket(config, { path: `jobs/${jobId}?now=1`, method: 'DELETE' }));
  await withStore(config, commandLog(), async (store, owned) => {
    watchIfConfigured(store, config, jobId);
    store.jobs.unwatch(jobId, 'ended');
    store.wake();
    // A running agent releases its grants itself.
    if (owned !== undefined && store.leases.allOpen().length > 0)
      await (await import('../serve-state.ts')).endGrants(config, owned);
  });
}

/** Has one complete pass run. The kind `unwatch` ends the job with it. */
async function runCompletePass(config: Config, jobId: JobId, kind: 'sync' | 'unwatch'): Promise<PassSummary> {
  if (hasFleet(config)) return await (await import('../fleet/commands.ts')).passByFleet(config, jobId, kind);
  if (isOfAnother(config)) return await passByAgent(config, jobId, kind);
  const progress = resultsProgress(process.stderr);
  const askedAt = Date.now();
  const onWait = (store: Store) => {
    const row = store.resultSyncs.get(jobId);
    if (row !== undefined && row.startedAt >= askedAt) progress.show(row);
  };
  try {
    return (await askServed<{ summary: PassSummary }>(config, { ...passRequest(config, jobId, kind), onWait })).summary;
  } finally {
    progress.close();
  }
}

/** By the agent of another user. */
function passByAgent(config: Config, jobId: JobId, kind: 'sync' | 'unwatch'): Promise<PassSummary> {
  return untilStopped(async (signal) => {
    if (kind === 'sync') return await askSocket(config, { path: `jobs/${jobId}/sync`, method: 'POST', signal });
    const question = { path: `jobs/${jobId}`, method: 'DELETE', signal } as const;
    return (await askSocket<{ readonly pass: PassSummary }>(config, question)).pass;
  });
}
