/** Removes jobs from a fleet: their rows from its database, and their files if this machine has their directory. */
import { OldJobs, removeJobFiles } from '../agent/forget.ts';
import type { Log } from '../agent/ports/host.ts';
import type { FleetConfig } from '../config/config.ts';
import { asJobtailError, JobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import { Secrets } from '../redact.ts';
import type { Store } from '../store/store.ts';
import { systemClock } from '../system/clock.ts';
import type { RemovedFiles } from '../system/remove-tree.ts';
import { fleetAddress, mirrorIdentity } from './fleet.ts';
import { notWatched } from './state.ts';

/** Removes a job that no agent works on. @throws JobtailError */
type RemoveJob = (jobId: JobId, deleteFiles: boolean) => Promise<RemovedFiles>;

/** The files are in the mirror directory of another machine. */
export class Elsewhere extends JobtailError {}

/** Runs `work` on a store with the rows of all jobs. */
export async function withJobsOfFleet(
  config: FleetConfig,
  log: Log,
  work: (store: Store, remove: RemoveJob) => Promise<void>,
): Promise<void> {
  const address = await fleetAddress(config.fleet, log, new Secrets());
  const [{ FleetClient }, { requireFree }] = await Promise.all([
    import('../fleet/client.ts'),
    import('../fleet/forgotten.ts'),
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
    const removed = deleteFiles ? await removeJobFiles(directory, jobId) : { files: 0, bytes: 0 };
    await client.forget(jobId);
    return removed;
  };
  try {
    await work(await client.jobs(), remove);
  } finally {
    await client.close();
  }
}

const INTERVAL_MS = 60 * 60_000;

/** Removes old jobs of the fleet, now and every hour; several agents may do it at the same time. Returns how to stop it. */
export function removeOldJobs(config: FleetConfig, log: Log): () => Promise<void> {
  const { retention } = config;
  if (retention.settledMs === null) return async () => {};
  const oldJobs = new OldJobs();
  let isStopped = false;
  const round = () =>
    withJobsOfFleet(config, log, async (store, remove) => {
      for (const jobId of oldJobs.in(store, retention, systemClock.now(), log)) {
        if (isStopped) return;
        try {
          log.info(
            { jobId, deleteFiles: retention.deleteFiles, ...(await remove(jobId, retention.deleteFiles)) },
            'job removed',
          );
        } catch (thrown) {
          const { code, message } = asJobtailError(thrown);
          // Another agent removed it, or is to do it.
          if (code !== 'job-unknown' && !(thrown instanceof Elsewhere))
            log.warn({ jobId, reason: message }, 'old job not removed');
        }
      }
    }).catch((thrown: unknown) => log.warn({ err: asJobtailError(thrown).message }, 'old jobs not read'));
  let running = round();
  const timer = setInterval(() => {
    running = running.then(round);
  }, INTERVAL_MS);
  return async () => {
    isStopped = true;
    clearInterval(timer);
    await running;
  };
}
