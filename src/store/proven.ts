/** What of a job is not proven to be here as the server has it. */
import type { JobId } from '../job.ts';
import { countOf } from '../numbers.ts';
import { shownLiveFile } from './live-files.ts';
import type { ResultCounts } from './rows.ts';
import type { Store } from './store.ts';

type ShownFile = ReturnType<typeof shownLiveFile>;

/** A reason for each live file, and for the results that are not complete. */
export function unprovenOf(
  files: readonly Pick<ShownFile, 'taskId' | 'file' | 'bytes' | 'exact' | 'verified' | 'error'>[],
  results: Pick<ResultCounts, 'failed' | 'inFlux' | 'queued'>,
): string[] {
  const live = files.flatMap(({ taskId, file, bytes, exact, verified, error }) => {
    const why = error?.message ?? (exact ? (verified || bytes === 0 ? undefined : 'not verified') : 'inexact bytes');
    return why === undefined ? [] : [`task ${taskId} ${file}: ${why}`];
  });
  const counts = [
    [results.failed, 'not fetched, or refused by name'],
    [results.inFlux, 'changed while it was fetched'],
    [results.queued, 'not fetched yet'],
  ] as const;
  return [...live, ...counts.flatMap(([count, what]) => (count > 0 ? [`${countOf(count, 'result')}: ${what}`] : []))];
}

export const unprovenIn = (store: Store, jobId: JobId): string[] =>
  unprovenOf(store.liveFiles.ofJob(jobId).map(shownLiveFile), store.results.counts(jobId));
