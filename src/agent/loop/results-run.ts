/** The syncs of results of one followed job. */
import { QueuedRemote } from '../calls.ts';
import { EARLY_MS } from '../results/results.ts';
import type { JobParts } from './job-runs.ts';
import { withJitter } from './pace.ts';

export class ResultsRun {
  readonly #job: JobParts;
  readonly #onListed: (names: readonly string[]) => Promise<void>;

  constructor(job: JobParts, onListed: (names: readonly string[]) => Promise<void>) {
    this.#job = job;
    this.#onListed = onListed;
  }

  async run(): Promise<void> {
    const { jobId, context, stage, runs, due, signal } = this.#job;
    const { calls, limits, pass } = context;
    const { results } = pass;
    const { store, log, random } = context.deps;
    // A newer request may exclude results.
    if (store.jobs.get(jobId)?.results !== true || stage.current === 'deleted') return;
    const remote = new QueuedRemote(context.remote, calls, 'patient');
    const { resultsIntervalMs } = limits;
    const delayMs = results.isEarly(jobId) ? Math.min(2 * EARLY_MS, resultsIntervalMs) : resultsIntervalMs;
    const end = await results.sync(jobId, { remote, final: false, onListed: this.#onListed, signal });
    runs.worked('results');
    if (end.changed + end.failed > 0) log.info({ jobId, ...end }, 'results synced');
    runs.resultsSynced();
    if (stage.isFollowed) due.planAgain('results', withJitter(delayMs, random()));
  }
}
