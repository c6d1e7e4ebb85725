/** Deleted jobs: older copies of an archive of logs (docs/dev/rest.md 3.6) must never replace their files. */
import { asJobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import type { JobInformation } from '../../job-information.ts';
import type { Store } from '../../store/store.ts';
import type { Clock } from '../../system/clock.ts';
import type { JobService } from '../ports/server.ts';

/** The job state of a deleted job. */
export const DELETED = 'Deleted';

interface DeletedJobsOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly jobService: JobService | null;
  readonly signal: AbortSignal;
}

/** What the service reports now, unless the store has the job as deleted. A refusal of the service decides nothing. */
export async function reportedNow(jobId: JobId, options: DeletedJobsOptions): Promise<JobInformation | undefined> {
  const { store, jobService, signal } = options;
  const stored = store.jobInformation.get(jobId)?.information;
  if (stored?.state === DELETED) return stored;
  const information = await jobService?.getJob(jobId, signal).catch((thrown: unknown) => {
    if (signal.aborted) throw asJobtailError(thrown);
    return undefined;
  });
  if (information?.state === DELETED) saveDeleted(information, options);
  return information;
}

export function saveDeleted(
  information: JobInformation,
  { store, clock }: { readonly store: Store; readonly clock: Clock },
): void {
  const now = clock.now();
  const row = { jobId: information.id, information, since: now, reportedAt: now };
  store.transaction(() => store.jobInformation.save(row));
}
