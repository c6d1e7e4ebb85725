/** What of a job is not proven to be here as the server has it. */
import type { JobId, LiveFileKey } from '../job.ts';
import { countOf } from '../numbers.ts';
import type { LiveFileRow, StoredError } from '../store/rows.ts';
import type { Store } from '../store/store.ts';

interface ShownFile extends LiveFileKey {
  readonly error: LiveFileRow['error'];
  readonly bytes: number;
  readonly exact: boolean;
  readonly verified: boolean;
}

/** A reason for each live file, and for the results that are not complete. `error`: why the last pass was given up. */
export function unprovenOf(
  error: StoredError | null,
  files: readonly ShownFile[],
  results: { readonly failed: number; readonly inFlux: number; readonly queued: number },
): string[] {
  const job = error === null ? [] : [`no last pass: ${error.message}`];
  const live = files.flatMap(({ taskId, file, bytes, exact, verified, error }) => {
    const why = error?.message ?? (exact ? (verified || bytes === 0 ? undefined : 'not verified') : 'inexact bytes');
    return why === undefined ? [] : [`task ${taskId} ${file}: ${why}`];
  });
  const counts = [
    [results.failed, 'not fetched, or refused'],
    [results.inFlux, 'changed while it was fetched'],
    [results.queued, 'not fetched yet'],
  ] as const;
  return [
    ...job,
    ...live,
    ...counts.flatMap(([count, what]) => (count > 0 ? [`${countOf(count, 'result')}: ${what}`] : [])),
  ];
}

export function unprovenIn(store: Store, jobId: JobId): string[] {
  const files = store.liveFiles.ofJob(jobId).map(({ taskId, file, error, position, inexact, verified }) => {
    return { taskId, file, error, bytes: position, exact: inexact.length === 0, verified: verified === position };
  });
  return unprovenOf(store.jobs.get(jobId)?.error ?? null, files, store.results.counts(jobId));
}
