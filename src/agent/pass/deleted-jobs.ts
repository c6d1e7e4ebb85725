/**
 * Whether a job was deleted on the server. Its files are final then: older copies that the service may still return
 * from an archive of logs (docs/rest.md 3.6) must never replace them.
 */
import { asJobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import type { JobInformation } from '../../job-information.ts';
import type { Store } from '../../store/store.ts';
import type { Clock } from '../../system/clock.ts';
import type { JobService } from '../ports.ts';

/** The job state of a deleted job. */
export const DELETED = 'Deleted';

export interface DeletedJobsOptions {
  readonly store: Store;
  readonly jobService: JobService | null;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Requests the state of the job, unless the store has it as deleted. A service that refuses to report it decides nothing. */
export async function isDeleted(jobId: JobId, options: DeletedJobsOptions): Promise<boolean> {
  const { store, jobService, clock, signal } = options;
  if (store.jobInformation.get(jobId)?.information.state === DELETED) return true;
  if (jobService === null) return false;
  try {
    const information = await jobService.getJob(jobId, signal);
    if (information.state !== DELETED) return false;
    saveDeleted(information, store, clock);
    return true;
  } catch (thrown) {
    if (signal.aborted) throw asJobtailError(thrown);
    return false;
  }
}

/** Keeps in the store that a job was deleted. */
export function saveDeleted(information: JobInformation, store: Store, clock: Clock): void {
  const now = clock.now();
  const deleted = { ...information, state: DELETED };
  store.transaction(() =>
    store.jobInformation.save({ jobId: information.id, information: deleted, since: now, toldAt: now }),
  );
}
