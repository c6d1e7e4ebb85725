/** The syncs of results of one followed job, and what refused listings show. */
import type { JobtailError } from '../../errors.ts';
import { phaseOf } from '../../job-information.ts';
import { QueuedRemote } from '../calls.ts';
import { saveDeleted } from '../pass/deleted-jobs.ts';
import { EARLY_MS } from '../results/results.ts';
import type { JobParts } from './job-runs.ts';
import { withJitter } from './pace.ts';

/** A listing that worked before and is refused for this time, without live files, shows that the job was deleted. */
const DELETED_AFTER_MS = 10 * 60_000;

export class ResultsRun {
  readonly #job: JobParts;
  readonly #onListed: (names: readonly string[]) => Promise<void>;
  #wasListed = false;
  #refusedSince: number | undefined;

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
    this.listed();
    runs.worked('results');
    if (end.changed + end.failed > 0) log.info({ jobId, ...end }, 'results synced');
    runs.resultsSynced();
    if (stage.isFollowed) due.planAgain('results', withJitter(delayMs, random()));
  }

  listed(): void {
    this.#wasListed = true;
    this.#refusedSince = undefined;
  }

  /**
   * Whether an older release, which reports no deletion, shows that the job was deleted: it is over, the service has no
   * live file of it (`hasNoFile`), and its listing, which worked before, is refused for minutes.
   */
  isDeletedBy({ policy, code }: JobtailError, hasNoFile: boolean): boolean {
    const { jobId, context } = this.#job;
    const { store, clock } = context.deps;
    const isRefused = policy.isRefusal || code === 'http-status';
    const reported = store.jobInformation.get(jobId)?.information;
    if (!isRefused || !hasNoFile || reported === undefined || phaseOf(reported.state) !== 'over') {
      this.#refusedSince = undefined;
      return false;
    }
    const now = clock.monotonic();
    this.#refusedSince ??= now;
    if (!this.#hasBeenListed || now - this.#refusedSince < DELETED_AFTER_MS) return false;
    saveDeleted(reported, context.deps);
    return true;
  }

  get #hasBeenListed(): boolean {
    const { jobId, context } = this.#job;
    const { results, liveFiles } = context.deps.store;
    if (this.#wasListed || liveFiles.ofJob(jobId).some(({ listedName }) => listedName !== null)) return true;
    const { value, done } = results.ofJob(jobId)[Symbol.iterator]().next();
    return done !== true && value !== undefined;
  }
}
