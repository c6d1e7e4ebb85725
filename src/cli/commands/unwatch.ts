/** `agent unwatch JOB`: the last complete pass, and the end of following. */
import { type Config, hasFleet } from '../../config/config.ts';
import { requireOrdered, withStore } from '../../daemon/state.ts';
import { asJobtailError, EXIT } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import { isNoJob } from '../job-service.ts';
import { commandLog } from '../process.ts';
import { summaryIsWhole, summaryText } from '../show/pass-summary.ts';
import { passOver } from './complete-pass.ts';
import { type ConfigOption, configurationAsOwner } from './configuration.ts';

export async function unwatch(jobId: JobId, options: ConfigOption & { readonly now?: boolean }): Promise<void> {
  const config = await configurationAsOwner(options);
  try {
    if (options.now === true) await endNow(config, jobId);
    else await endWithPass(config, jobId);
  } catch (thrown) {
    if (asJobtailError(thrown).code !== 'job-unknown') throw thrown;
    process.stdout.write(`job ${jobId} is not watched\n`);
    return;
  }
  process.stdout.write(`job ${jobId} is followed no longer; its files stay in ${config.mirror.directory}/${jobId}\n`);
  if (config.watch.some(({ job }) => job === jobId)) {
    process.stdout.write(`it still stands in ${config.file}: agent watch ${jobId} follows it again\n`);
  }
}

async function endWithPass(config: Config, jobId: JobId): Promise<void> {
  try {
    const summary = await passOver(config, { jobId, kind: 'unwatch' });
    process.stdout.write(summaryText(jobId, summary));
    if (!summaryIsWhole(summary)) process.exitCode = EXIT.failed;
  } catch (thrown) {
    // A number of no job would stay, for its last pass is refused each time.
    if (!asJobtailError(thrown).policy.isRefusal || !(await isNoJob(config, jobId))) throw thrown;
    await endNow(config, jobId);
    process.stdout.write(`the service has no job ${jobId}: there is no last pass\n`);
  }
}

async function endNow(config: Config, jobId: JobId): Promise<void> {
  if (hasFleet(config)) return (await import('../fleet/orders.ts')).endByFleet(config, jobId);
  const log = commandLog();
  await withStore(config, log, async (store, owned) => {
    requireOrdered(store, config, jobId);
    store.jobs.unwatch(jobId, 'ended');
    store.wake();
    // A running agent gives back what it lent by itself.
    if (owned !== undefined && store.leases.allOpen().length > 0) {
      const { connect } = await import('../../daemon/connection.ts');
      const connection = await connect(config, log, { habits: owned.store.habits });
      await owned.transfers.endAll(connection.remote, new AbortController().signal);
      await connection.close();
    }
  });
}
