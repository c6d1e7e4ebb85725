/** Removes jobs from a fleet: their rows from its database, and their files if this machine has their directory. */
import { Elsewhere, removeJobFiles } from '../agent/forget.ts';
import type { Log } from '../agent/ports/host.ts';
import type { RemoveJob } from '../agent/retention.ts';
import type { FleetConfig } from '../config/config.ts';
import { Secrets } from '../redact.ts';
import type { Store } from '../store/store.ts';
import { fleetAddress, mirrorIdentity } from './fleet.ts';
import { notWatched } from './state.ts';

/** Runs `work` on a store with the rows of all jobs. */
export async function withJobsOfFleet(
  config: FleetConfig,
  log: Log,
  // It removes a job that no agent works on. @throws JobtailError
  work: (store: Store, remove: RemoveJob) => Promise<void>,
): Promise<void> {
  const address = await fleetAddress(config.fleet, log, new Secrets());
  const [{ FleetClient }, { requireFree }] = await Promise.all([
    import('../fleet/commands/client.ts'),
    import('../fleet/commands/forgotten.ts'),
  ]);
  const { directory } = config.mirror;
  const client = await FleetClient.open(address);
  const remove: RemoveJob = async (jobId, deleteFiles) => {
    const [row] = await client.owners(jobId);
    if (row === undefined) throw notWatched(jobId);
    requireFree(row);
    const isHere = row.mirror === null || row.mirror === (await mirrorIdentity(directory));
    if (deleteFiles && !isHere)
      throw new Elsewhere('local-io', `${directory} is not the mirror directory with the files of job ${jobId}`, {
        hint: 'run the command on the machine that has them',
      });
    // Rows last: after a kill, the next attempt removes the rest.
    const claim = (setAside: () => void) => client.whileFree(jobId, setAside);
    const removed = deleteFiles ? await removeJobFiles(directory, jobId, claim) : { files: 0, bytes: 0 };
    await client.forget(jobId);
    return removed;
  };
  try {
    await work(await client.jobs(), remove);
  } finally {
    await client.close();
  }
}
