/** The syncs of results of one followed job. */
import { EARLY_MS } from '../results/results.ts';
import { withJitter } from '../schedule/pace.ts';
import { isFollowed } from './job-life.ts';
import type { OneJob } from './one-job.ts';

/** Syncs once, and plans the next sync. `onListed` receives the listed names. */
export async function runResults(
  job: OneJob,
  onListed: (names: readonly string[]) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const { jobId, context, failures, due } = job;
  const { results } = context;
  const { resultsIntervalMs } = context.limits;
  const { store, log, random } = context;
  // A newer request may exclude results.
  if (store.jobs.get(jobId)?.results !== true) return;
  const delayMs = results.isEarly(jobId) ? Math.min(1.25 * EARLY_MS, resultsIntervalMs) : resultsIntervalMs;
  const { ofService } = failures.logged;
  const end = await results.sync(jobId, { remote: context.waiting.patient, isFinal: false, onListed, signal });
  failures.worked('results', ofService);
  if (end.changed + end.failed > 0) log.info({ jobId, ...end }, 'results synced');
  failures.resultsSynced();
  if (isFollowed(job.life)) due.planAgain('results', withJitter(delayMs, random()));
}
