/** Removes jobs that are not followed any more from the state, and on request their files. */
import { JobtailError } from '../errors.ts';
import { type JobId, parseLong } from '../job.ts';
import { printable } from '../printable.ts';
import { unprovenIn } from '../proven.ts';
import type { JobRow } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import { type RemovedFiles, removeTree } from '../system/remove-tree.ts';
import type { Log } from './ports/host.ts';

export interface ForgetOptions {
  readonly mirrorDirectory: string;
  readonly deleteFiles: boolean;
  readonly now: () => number;
  /** Called within the transaction that removes the rows. */
  readonly onForgotten?: (removed: RemovedFiles) => void;
}

/** The last time at which the agent worked on a job: for a settled one, its last comparison. */
export const lastWorkOn = ({ polledAt, watchedAt }: { readonly polledAt: number | null; readonly watchedAt: number }) =>
  Math.max(polledAt ?? 0, watchedAt);

export const isOver = ({ state }: { readonly state: JobRow['state'] }) => state === 'ended' || state === 'settled';

export interface Retention {
  /** Null: no job is old. */
  readonly settledMs: number | null;
  readonly deleteFiles: boolean;
}

/** Finds old jobs. Those that are not verified stay, and are logged once each. */
export class OldJobs {
  readonly #logged = new Set<JobId>();

  in(store: Store, { settledMs }: Retention, now: number, log: Log): JobId[] {
    if (settledMs === null) return [];
    return store.jobs.all().flatMap((job) => {
      const { jobId, state } = job;
      if (state !== 'settled' || now - lastWorkOn(job) < settledMs) return [];
      const [reason] = unprovenIn(store, jobId);
      if (reason === undefined) return [jobId];
      if (!this.#logged.has(jobId)) log.warn({ jobId, reason }, 'old job not removed');
      this.#logged.add(jobId);
      return [];
    });
  }
}

/** Files first: after a kill in between, the same command removes the rest. @throws JobtailError */
export async function forgetJob(store: Store, jobId: JobId, options: ForgetOptions): Promise<RemovedFiles> {
  requireForgettable(store, jobId);
  const removed = options.deleteFiles ? await removeJobFiles(options.mirrorDirectory, jobId) : { files: 0, bytes: 0 };
  store.transaction(() => {
    // A command may have followed it again meanwhile: its files are requested again.
    requireForgettable(store, jobId);
    store.jobs.forget(jobId, options.now());
    options.onForgotten?.(removed);
  });
  return removed;
}

/** The directory of a job below the mirror directory, with all that is in it. */
export async function removeJobFiles(mirrorDirectory: string, jobId: JobId): Promise<RemovedFiles> {
  if (parseLong(jobId) !== jobId) throw new Error(`not an id: ${JSON.stringify(jobId)}`);
  return await removeTree(mirrorDirectory, jobId);
}

function requireForgettable(store: Store, jobId: JobId): void {
  const job = store.jobs.get(jobId);
  if (job === undefined) throw new JobtailError('job-unknown', `job ${jobId} is not known`);
  requireOver(job);
  if (store.leases.allOpen().some((lease) => lease.jobId === jobId))
    throw new JobtailError('unavailable', `a temporary key of job ${jobId} is still valid`, {
      hint: 'run the command again when the service answers: the agent ends the key',
    });
}

export function requireOver(job: { readonly jobId: string; readonly state: JobRow['state'] }): void {
  if (isOver(job)) return;
  throw new JobtailError('usage', `job ${printable(job.jobId)} is followed`, {
    hint: `end it first: agent unwatch ${printable(job.jobId)}`,
  });
}
