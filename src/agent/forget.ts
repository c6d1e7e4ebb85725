/** Removes jobs that are not followed any more from the state, and on request their files. */
import { JobtailError } from '../errors.ts';
import { isOver, type JobId, parseLong } from '../job.ts';
import { printable } from '../printable.ts';
import type { JobRow } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import { type RemovedFiles, removeTree, renameDirectory } from '../system/remove-tree.ts';

export interface ForgetOptions {
  readonly mirrorDirectory: string;
  readonly deleteFiles: boolean;
  readonly now: () => number;
  /** Called within the transaction that removes the rows. */
  readonly onForgotten?: ((removed: RemovedFiles) => void) | undefined;
}

/** The last time at which the agent worked on a job: for a settled one, its last comparison. */
export const lastWorkOn = ({ polledAt, watchedAt }: { readonly polledAt: number | null; readonly watchedAt: number }) =>
  Math.max(polledAt ?? 0, watchedAt);

/** The files are in the mirror directory of another machine. */
export class Elsewhere extends JobtailError {}

/**
 * Files first: after a kill in between, the same command removes the rest. What follows the job again meanwhile writes
 * other files. @throws JobtailError
 */
export async function forgetJob(store: Store, jobId: JobId, options: ForgetOptions): Promise<RemovedFiles> {
  const { mirrorDirectory, deleteFiles, now, onForgotten } = options;
  const claim = (setAside: () => void) =>
    store.transaction(() => {
      requireForgettable(store, jobId, now());
      setAside();
    });
  requireForgettable(store, jobId, now());
  const removed = deleteFiles ? await removeJobFiles(mirrorDirectory, jobId, claim) : { files: 0, bytes: 0 };
  store.transaction(() => {
    requireForgettable(store, jobId, now());
    store.jobs.forget(jobId, now());
    onForgotten?.(removed);
  });
  return removed;
}

/** The directory of a job below the mirror directory, with all that is in it. `claim`: runs the step that sets it aside. */
export async function removeJobFiles(
  mirrorDirectory: string,
  jobId: JobId,
  claim: (setAside: () => void) => void | Promise<void>,
): Promise<RemovedFiles> {
  if (parseLong(jobId) !== jobId) throw new Error(`not an id: ${JSON.stringify(jobId)}`);
  const aside = `${jobId}.removed`;
  // Of a kill.
  const left = await removeTree(mirrorDirectory, aside);
  await claim(() => renameDirectory(mirrorDirectory, jobId, aside));
  const { files, bytes } = await removeTree(mirrorDirectory, aside);
  return { files: left.files + files, bytes: left.bytes + bytes };
}

function requireForgettable(store: Store, jobId: JobId, now: number): void {
  const job = store.jobs.get(jobId);
  if (job === undefined) throw new JobtailError('job-unknown', `job ${jobId} is not known`);
  requireOver(job);
  if (store.leases.allOpen().some((lease) => lease.jobId === jobId))
    throw new JobtailError('unavailable', `a temporary key of job ${jobId} is still valid`, {
      hint: 'run the command again when the service answers: the agent ends the key',
    });
  if (store.requests.isWorkedOn(jobId, now))
    throw new JobtailError('unavailable', `another command works on job ${jobId}`, {
      hint: 'run the command again when the other one (sync, wait, verify, watch --foreground) has ended',
    });
}

export function requireOver(job: { readonly jobId: string; readonly state: JobRow['state'] }): void {
  if (isOver(job)) return;
  throw new JobtailError('usage', `job ${printable(job.jobId)} is followed`, {
    hint:
      job.state === 'ending'
        ? `its last pass is not done; to end it without: agent unwatch ${printable(job.jobId)} --now`
        : `end it first: agent unwatch ${printable(job.jobId)}`,
  });
}
