/** Removes jobs from the state of a running agent: those that commands name, and those that `Retention` names. */
import { asJobtailError, type RequestRefusal, refusalOf, stopped } from '../../errors.ts';
import { untilAborted } from '../../in-turn.ts';
import { isOver, type JobId } from '../../job.ts';
import type { RequestRow } from '../../store/rows.ts';
import type { RemovedFiles } from '../../system/remove-tree.ts';
import { STATE } from '../failures.ts';
import { forgetJob } from '../forget.ts';
import type { RequestContext } from './service-requests.ts';

interface ForgettingOptions {
  readonly context: RequestContext;
  /** Ends all work on a job, and its temporary keys. */
  readonly release: (jobId: JobId) => Promise<void>;
  readonly signal: AbortSignal;
}

export class Forgetting {
  readonly #options: ForgettingOptions;
  readonly #underWay = new Map<JobId, Promise<void>>();

  constructor(options: ForgettingOptions) {
    this.#options = options;
  }

  /** Executes the requests of commands for the jobs of this agent. */
  serve(isMine: (jobId: JobId) => boolean): void {
    for (const request of this.#options.context.store.requests.open('forget')) {
      if (isMine(request.jobId)) this.#begin(request);
    }
  }

  /** Resolves when no job is being removed. */
  async stop(): Promise<void> {
    await Promise.all(this.#underWay.values());
  }

  #begin(request: RequestRow): void {
    const { jobId } = request;
    if (this.#underWay.has(jobId)) return;
    const { failures } = this.#options.context;
    const done = this.#execute(request)
      .then(() => failures.cleared(STATE))
      .catch((thrown: unknown) => failures.failed(STATE, asJobtailError(thrown)))
      .finally(() => this.#underWay.delete(jobId));
    this.#underWay.set(jobId, done);
  }

  /** Answers all requests for the job: that of a command that was killed may stand beside its repetition. */
  async #execute({ jobId }: RequestRow): Promise<void> {
    const { requests } = this.#options.context.store;
    const open = () => requests.open('forget').filter((request) => request.jobId === jobId);
    const deleteFiles = open().some(({ kind }) => kind === 'forget-files');
    // Also what came meanwhile, unless it wants files removed that are not.
    const answer = (text: RemovedFiles | RequestRefusal) => {
      for (const { requestId, kind } of open())
        if (deleteFiles || kind === 'forget') requests.answer(requestId, JSON.stringify(text));
    };
    try {
      const removed = await this.forget(jobId, deleteFiles, answer);
      this.#options.context.log.info({ jobId, deleteFiles, ...removed }, 'job removed');
    } catch (thrown) {
      const error = asJobtailError(thrown);
      // The next agent executes a request that is stopped.
      if (error.code !== 'aborted') answer(refusalOf(error));
    }
  }

  /** `onForgotten`: called within the transaction that removes the rows. */
  async forget(
    jobId: JobId,
    deleteFiles: boolean,
    onForgotten?: (removed: RemovedFiles) => void,
  ): Promise<RemovedFiles> {
    const { context, release, signal } = this.#options;
    const { store, clock, mirrorDirectory } = context;
    const job = store.jobs.get(jobId);
    // A command that is refused must not stop the pass of the command that waits.
    if (job !== undefined && isOver(job) && !store.requests.isWorkedOn(jobId, clock.now())) {
      await release(jobId);
      await untilAborted(context.catchUp(), signal, stopped);
    }
    return await forgetJob(store, jobId, { mirrorDirectory, deleteFiles, now: clock.now, onForgotten });
  }
}
