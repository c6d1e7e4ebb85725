/** `agent unwatch JOB`: the last complete pass, and the end of following. */
import { type Config, hasFleet } from '../../config/config.ts';
import { commandLog } from '../../daemon/command-log.ts';
import { requireWatched, withStore } from '../../daemon/state.ts';
import { EXIT } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import { summaryIsWhole, summaryText } from '../show/pass-summary.ts';
import { passOver } from './complete-pass.ts';
import { type ConfigOption, configurationAsOwner } from './configuration.ts';

export async function unwatch(jobId: JobId, options: ConfigOption & { readonly now?: boolean }): Promise<void> {
  const config = await configurationAsOwner(options);
  if (options.now === true && hasFleet(config)) await (await import('../fleet/orders.ts')).endByFleet(config, jobId);
  else if (options.now === true) await endNow(config, jobId);
  else {
    const summary = await passOver(config, { jobId, kind: 'unwatch' });
    process.stdout.write(summaryText(jobId, summary));
    if (!summaryIsWhole(summary)) process.exitCode = EXIT.failed;
  }
  process.stdout.write(`job ${jobId} is followed no longer; its files stay in ${config.mirror.directory}/${jobId}\n`);
  if (config.watch.some(({ job }) => job === jobId)) {
    process.stdout.write(`it still stands in ${config.file}: agent watch ${jobId} follows it again\n`);
  }
}

async function endNow(config: Config, jobId: JobId): Promise<void> {
  const log = commandLog();
  await withStore(config, log, async (store, owned) => {
    requireWatched(store, jobId);
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
