/** Removes the jobs that commands name from the state of a running agent. */
import { asJobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import type { RequestRow } from '../../store/rows.ts';
import type { RemovedFiles } from '../../system/remove-tree.ts';
import type { Deps } from '../deps.ts';
import { forgetJob, isOver } from '../forget.ts';
import { type Failures, STATE } from './job-runs.ts';

export type ForgetAnswer = RemovedFiles | { readonly error: string; readonly code: string; readonly hint?: string };

export interface ForgettingOptions {
  readonly deps: Deps;
  readonly failures: Failures;
  readonly mirrorDirectory: string;
  /** Ends all work on a job, and its temporary keys. */
  readonly release: (jobId: JobId) => Promise<void>;
}

export class Forgetting {
  readonly #options: ForgettingOptions;
  readonly #underWay = new Map<JobId, Promise<void>>();

  constructor(options: ForgettingOptions) {
    this.#options = options;
  }

  /** Executes the requests of commands for the jobs of this agent. */
  serve(isMine: (jobId: JobId) => boolean): void {
    for (const request of this.#options.deps.store.requests.open('forget')) {
      const { jobId } = request;
      if (isMine(jobId) && !this.#underWay.has(jobId)) this.#underWay.set(jobId, this.#execute(request));
    }
  }

  /** Resolves when no job is being removed. */
  async ended(): Promise<void> {
    await Promise.all(this.#underWay.values());
  }

  async #execute({ requestId, jobId, kind }: RequestRow): Promise<void> {
    const { deps, failures } = this.#options;
    const { requests } = deps.store;
    const answer = (text: ForgetAnswer) => requests.answer(requestId, JSON.stringify(text));
    try {
      await this.#forget(jobId, kind === 'forget-files', answer).catch((thrown: unknown) => {
        const { message, code, hint } = asJobtailError(thrown);
        answer({ error: message, code, ...(hint !== undefined && { hint }) });
      });
    } catch (thrown) {
      failures.failed(STATE, asJobtailError(thrown));
    } finally {
      this.#underWay.delete(jobId);
    }
  }

  async #forget(jobId: JobId, deleteFiles: boolean, onForgotten: (removed: RemovedFiles) => void): Promise<void> {
    const { deps, mirrorDirectory, release } = this.#options;
    const { store, clock, log } = deps;
    const job = store.jobs.get(jobId);
    if (job !== undefined && isOver(job)) await release(jobId);
    const removed = await forgetJob(store, jobId, { mirrorDirectory, deleteFiles, now: clock.now, onForgotten });
    log.info({ jobId, deleteFiles, ...removed }, 'job removed');
  }
}
