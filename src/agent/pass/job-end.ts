/** The complete passes for ended and settled jobs and for commands, and the answers to the commands. */
import { asJobtailError } from '../../errors.ts';
import { type JobId, keyText } from '../../job.ts';
import type { JobRow, RequestRow, WatchState } from '../../store/rows.ts';
import type { JobPolls } from '../poll/poll.ts';
import type { Log } from '../ports.ts';
import { type CompletePassOptions, completePass, type PassSummary } from './complete-pass.ts';

export interface RequestedPassesOptions extends Omit<CompletePassOptions, 'isLast' | 'signal'> {
  readonly log: Log;
}

export interface RequestedPass {
  /** Whether the job is settled if the pass finds nothing new; called before and after it. */
  readonly isSettling: () => boolean;
  /** Called with the appended bytes, before the commands are answered. */
  readonly onThrough: (appended: number) => Promise<void>;
  readonly signal: AbortSignal;
}

export interface PassEnd {
  readonly job: JobRow;
  readonly state: WatchState;
  /** Whether another pass is needed: requested meanwhile, or because the job must end. */
  readonly again: boolean;
}

export type PassAnswer =
  | { readonly summary: PassSummary }
  | { readonly error: string; readonly code?: string; readonly hint?: string | undefined };

const ANSWERS_MS = 24 * 60 * 60_000;

export class RequestedPasses {
  readonly #options: RequestedPassesOptions;
  readonly #serving = new Set<number>();

  constructor(options: RequestedPassesOptions) {
    this.#options = options;
  }

  /** Jobs with unanswered requests for a pass. A request for an unknown job is answered with an error. */
  asked(): Set<JobId> {
    const { store, clock } = this.#options;
    const jobs = new Set<JobId>();
    for (const request of store.requests.open()) {
      const { requestId, jobId } = request;
      if (this.#serving.has(requestId)) continue;
      if (store.jobs.get(jobId) === undefined) this.#answer(request, { error: `job ${jobId} is not watched` });
      else jobs.add(jobId);
    }
    store.requests.forgetAnswered(clock.now() - ANSWERS_MS);
    return jobs;
  }

  /** Runs one pass, which answers all requests from before it began; undefined for an unknown job. */
  async run(polls: JobPolls, { isSettling, onThrough, signal }: RequestedPass): Promise<PassEnd | undefined> {
    const { store } = this.#options;
    const { jobId } = polls;
    const job = store.jobs.get(jobId);
    if (job === undefined) return undefined;
    const requests = store.requests.open().filter((request) => request.jobId === jobId);
    for (const { requestId } of requests) this.#serving.add(requestId);
    try {
      const settles = isSettling();
      const isLast = settles || job.state === 'ending';
      const summary = await completePass(polls, { ...this.#options, isLast, signal });
      await onThrough(summary.appended);
      const settled = settles && summary.appended === 0 && isSettling();
      const state = await this.#conclude(job, summary, { settled, signal });
      for (const request of requests) this.#answer(request, { summary });
      const more = store.requests.open().some((request) => request.jobId === jobId);
      return { job, state, again: more || state === 'ending' };
    } catch (thrown) {
      const { message, code, hint } = asJobtailError(thrown);
      if (!signal.aborted) for (const request of requests) this.#answer(request, { error: message, code, hint });
      throw thrown;
    } finally {
      for (const { requestId } of requests) this.#serving.delete(requestId);
    }
  }

  async #conclude(
    job: JobRow,
    summary: PassSummary,
    { settled, signal }: { readonly settled: boolean; readonly signal: AbortSignal },
  ): Promise<WatchState> {
    const { store, results, remote, log } = this.#options;
    const { jobId } = job;
    // A command may have changed the state meanwhile, which takes precedence.
    const current = store.jobs.get(jobId)?.state ?? job.state;
    const ended = job.state === 'ending' && current === 'ending';
    const state = ended ? 'ended' : settled && current === 'watched' ? 'settled' : current;
    store.jobs.setState(jobId, state);
    if (state !== 'watched') await results.endTransfer(jobId, { remote, signal });
    const { verified } = summary;
    const openEnds = summary.openEnds.map((end) => `${keyText(end)}: ${end.reason}`);
    log[openEnds.length > 0 ? 'warn' : 'info']({ jobId, state, verified, openEnds }, 'complete pass ended');
    return state;
  }

  #answer(request: RequestRow, answer: PassAnswer): void {
    this.#options.store.requests.answer(request.requestId, JSON.stringify(answer));
  }
}
