/**
 * Deleted jobs. Their files are final: older copies that the service may send from an archive of logs (docs/dev/rest.md 3.6)
 * must never replace them.
 */
import { asJobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import type { JobInformation } from '../../job-information.ts';
import type { Store } from '../../store/store.ts';
import type { Clock } from '../../system/clock.ts';
import type { JobService, Remote } from '../ports.ts';

/** The job state of a deleted job. */
export const DELETED = 'Deleted';

export interface DeletedJobsOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly jobService: JobService | null;
  readonly signal: AbortSignal;
}

/** Requests the job state, unless the store has the job as deleted. A refusal of the service decides nothing. */
export async function isDeleted(jobId: JobId, options: DeletedJobsOptions): Promise<boolean> {
  if (isStoredAsDeleted(jobId, options.store)) return true;
  const information = await reported(jobId, options);
  if (information?.state !== DELETED) return false;
  save(information, options);
  return true;
}

/**
 * Corrects a deletion that the agent concluded from refused listings: the service reports another state, and lists the
 * files of the job again.
 */
export async function correctDeletion(jobId: JobId, remote: Remote, options: DeletedJobsOptions): Promise<void> {
  if (!isStoredAsDeleted(jobId, options.store)) return;
  const information = await reported(jobId, options);
  if (information === undefined || information.state === DELETED) return;
  const { signal } = options;
  if ((await unlessFailed(remote.listChangedFiles(jobId, signal), signal)) !== undefined) save(information, options);
}

export function saveDeleted(information: JobInformation, options: Pick<DeletedJobsOptions, 'store' | 'clock'>): void {
  save({ ...information, state: DELETED }, options);
}

const isStoredAsDeleted = (jobId: JobId, store: Store) =>
  store.jobInformation.get(jobId)?.information.state === DELETED;

async function reported(jobId: JobId, { jobService, signal }: DeletedJobsOptions): Promise<JobInformation | undefined> {
  return jobService === null ? undefined : await unlessFailed(jobService.getJob(jobId, signal), signal);
}

function unlessFailed<T>(call: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  return call.catch((thrown: unknown) => {
    if (signal.aborted) throw asJobtailError(thrown);
    return undefined;
  });
}

function save(information: JobInformation, { store, clock }: Pick<DeletedJobsOptions, 'store' | 'clock'>): void {
  const now = clock.now();
  const row = { jobId: information.id, information, since: now, reportedAt: now };
  store.transaction(() => store.jobInformation.save(row));
}
