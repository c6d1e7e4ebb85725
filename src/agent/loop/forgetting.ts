/** Removes jobs from the state of a running agent: those that commands name, and old ones by the rule of the configuration. */
import { asJobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import type { RequestRow } from '../../store/rows.ts';
import type { RemovedFiles } from '../../system/remove-tree.ts';
import { STATE } from '../failures.ts';
import { forgetJob, isOver, OldJobs, type Retention } from '../forget.ts';
import type { AgentContext } from './agent-context.ts';

export type ForgetAnswer = RemovedFiles | { readonly error: string; readonly code: string; readonly hint?: string };

interface ForgettingOptions {
  readonly context: AgentContext;
  readonly retention: Retention;
  /** Ends all work on a job, and its temporary keys. */
  readonly release: (jobId: JobId) => Promise<void>;
}

const INTERVAL_MS = 60 * 60_000;

export class Forgetting {
  readonly #options: ForgettingOptions;
  readonly #oldJobs = new OldJobs();
  #cancel = () => {};
  readonly #underWay = new Map<JobId, Promise<void>>();

  constructor(options: ForgettingOptions) {
    this.#options = options;
  }

  /** Removes old jobs, now and every hour. */
  start(): void {
    const { context, retention } = this.#options;
    const { store, clock, log } = context;
    if (retention.settledMs === null) return;
    this.#cancel = clock.timer(INTERVAL_MS, () => this.start());
    try {
      for (const jobId of this.#oldJobs.in(store, retention, clock.now(), log))
        this.#begin(jobId, () => this.#forget(jobId, retention.deleteFiles));
    } catch (thrown) {
      context.failures.failed(STATE, asJobtailError(thrown));
    }
  }

  /** Executes the requests of commands for the jobs of this agent. */
  serve(isMine: (jobId: JobId) => boolean): void {
    for (const request of this.#options.context.store.requests.open('forget')) {
      if (isMine(request.jobId)) this.#begin(request.jobId, () => this.#execute(request));
    }
  }

  /** Resolves when no job is being removed. */
  async stop(): Promise<void> {
    this.#cancel();
    await Promise.all(this.#underWay.values());
  }

  #begin(jobId: JobId, work: () => Promise<void>): void {
    if (this.#underWay.has(jobId)) return;
    const { failures, log } = this.#options.context;
    const failed = (thrown: unknown) => {
      const error = asJobtailError(thrown);
      if (error.code === 'store') failures.failed(STATE, error);
      else log.warn({ jobId, reason: error.message }, 'old job not removed');
    };
    const done = work()
      .catch(failed)
      .finally(() => this.#underWay.delete(jobId));
    this.#underWay.set(jobId, done);
  }

  async #execute({ requestId, jobId, kind }: RequestRow): Promise<void> {
    const { requests } = this.#options.context.store;
    const answer = (text: ForgetAnswer) => requests.answer(requestId, JSON.stringify(text));
    await this.#forget(jobId, kind === 'forget-files', answer).catch((thrown: unknown) => {
      const { message, code, hint } = asJobtailError(thrown);
      answer({ error: message, code, ...(hint !== undefined && { hint }) });
    });
  }

  async #forget(
    jobId: JobId,
    deleteFiles: boolean,
    onForgotten: (removed: RemovedFiles) => void = () => {},
  ): Promise<void> {
    const { context, release } = this.#options;
    const { store, clock, log } = context;
    const { mirrorDirectory } = context;
    const job = store.jobs.get(jobId);
    if (job !== undefined && isOver(job)) await release(jobId);
    const removed = await forgetJob(store, jobId, { mirrorDirectory, deleteFiles, now: clock.now, onForgotten });
    log.info({ jobId, deleteFiles, ...removed }, 'job removed');
  }
}
