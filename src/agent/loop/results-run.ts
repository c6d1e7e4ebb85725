/** The syncs of results of one followed job. */
import { withJitter } from '../schedule/pace.ts';
import type { OneJob } from './context.ts';
import { isFollowed } from './job-life.ts';

/** So that the next sync is not early by a rounded time. */
const AFTER_EARLY_MS = 250;

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
  const earlyMs = results.earlyMs(jobId);
  const { ofService } = failures.logged;
  const end = await results.sync(jobId, { remote: context.waiting.patient, isFinal: false, onListed, signal });
  failures.worked('results', ofService);
  if (end.changed + end.failed > 0) log.info({ jobId, ...end }, 'results synced');
  failures.resultsSynced();
  if (!isFollowed(job.life)) return;
  if (earlyMs > 0) due.plan('results', Math.min(earlyMs + AFTER_EARLY_MS, resultsIntervalMs));
  else due.planAgain('results', withJitter(resultsIntervalMs, random()));
}
