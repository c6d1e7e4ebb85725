/** `agent forget` in a fleet: removes the rows from its database, and the files if this machine has their directory. */
import { removeJobFiles } from '../../agent/forget.ts';
import type { FleetConfig } from '../../config/config.ts';
import { mirrorIdentity } from '../../daemon/fleet.ts';
import { notWatched } from '../../daemon/state.ts';
import { JobtailError } from '../../errors.ts';
import { requireFree } from '../../fleet/forgotten.ts';
import type { JobId } from '../../job.ts';
import type { Store } from '../../store/store.ts';
import type { RemovedFiles } from '../../system/remove-tree.ts';
import { withFleet, withView } from './client.ts';

type Remove = (jobId: JobId, deleteFiles: boolean) => Promise<RemovedFiles>;

export async function forgetInFleet(
  config: FleetConfig,
  work: (store: Store, remove: Remove) => Promise<void>,
): Promise<void> {
  const { directory } = config.mirror;
  await withFleet(config, async (client) => {
    const remove: Remove = async (jobId, deleteFiles) => {
      const [row] = await client.owners(jobId);
      if (row === undefined) throw notWatched(jobId);
      requireFree(row);
      const isElsewhere = row.mirror !== null && row.mirror !== (await mirrorIdentity(directory));
      if (deleteFiles && isElsewhere)
        throw new JobtailError('local-io', `${directory} is not the mirror directory with the files of job ${jobId}`, {
          hint: 'run the command on the machine that has them',
        });
      const removed = deleteFiles ? await removeJobFiles(directory, jobId) : { files: 0, bytes: 0 };
      await client.forget(jobId);
      return removed;
    };
    await withView({ config, client }, (store) => work(store, remove));
  });
}
