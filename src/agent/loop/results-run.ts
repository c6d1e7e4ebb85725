/** The syncs of results of one followed job. */
import { withJitter } from '../schedule/pace.ts';
import { isFollowed } from './job-life.ts';
import type { OneJob } from './one-job.ts';

/** Syncs once, and plans the next sync. `onListed` receives the listed names: those of tasks that are not known yet. */
export async function runResults(
  job: OneJob,
  onListed: (names: readonly string[]) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const { jobId, context, failures, due } = job;
  const { store, results, limits, log, random } = context;
  // A newer request may exclude results.
  if (store.jobs.get(jobId)?.results !== true) return;
  const { ofService } = failures.logged;
  const remote = context.waiting.patient;
  const awaitedMs = job.filesAwaitedMs;
  if (awaitedMs > 0) {
    if (!store.liveFiles.hasAny(jobId)) await onListed(await remote.listChangedFiles(jobId, signal));
    due.plan('results', awaitedMs);
    return;
  }
  const onResponse = (names: readonly string[]) => {
    failures.progressed('results');
    return onListed(names);
  };
  const end = await results.sync(jobId, { remote, isFinal: false, onListed: onResponse, signal });
  failures.logged.worked(ofService);
  if (end.changed + end.failed > 0) log.info({ jobId, ...end }, 'results synced');
  failures.resultsSynced();
  if (isFollowed(job.life)) due.planAgain('results', withJitter(limits.resultsIntervalMs, random()));
}
