/** The complete passes for ended and settled jobs and for commands, and the answers to the commands. */
import { asJobtailError, type JobtailError } from '../../errors.ts';
import { type JobId, keyText } from '../../job.ts';
import type { JobRow, RequestRow, WatchState } from '../../store/rows.ts';
import type { JobPolls } from '../poll/poll.ts';
import type { Log } from '../ports.ts';
import { completePass, type PassContext, type PassSummary, summaryWithoutPass } from './complete-pass.ts';

export interface RequestedPass {
  /** Whether the job is settled if the pass finds nothing new; called before and after it. */
  readonly isSettling: () => boolean;
  /** Whether the job is settled although its last pass fails in this way. */
  readonly isGivenUp: (failure: JobtailError) => boolean;
  /** Called with the appended bytes, before the commands are answered. */
  readonly onThrough: (appended: number) => Promise<void>;
  readonly signal: AbortSignal;
}

export interface PassEnd {
  readonly job: JobRow;
  readonly state: WatchState;
  /** Whether the pass was to end the job; others serve commands only. */
  readonly isLast: boolean;
  readonly failure?: JobtailError;
  /** Whether another pass is needed: requested meanwhile, or because the job must end. */
  readonly again: boolean;
}

export type PassAnswer =
  | { readonly summary: PassSummary }
  | { readonly error: string; readonly code?: string; readonly hint?: string | undefined };

const ANSWERS_MS = 24 * 60 * 60_000;

export class RequestedPasses {
  readonly #context: PassContext;
  readonly #log: Log;
  readonly #serving = new Set<number>();

  constructor(context: PassContext, log: Log) {
    this.#context = context;
    this.#log = log;
  }

  /** Jobs with unanswered requests for a pass. A request for an unknown job is answered with an error. */
  asked(): Set<JobId> {
    const { store, clock } = this.#context;
    const jobs = new Set<JobId>();
    for (const request of store.requests.open('pass')) {
      const { requestId, jobId } = request;
      if (this.#serving.has(requestId)) continue;
      if (store.jobs.get(jobId) === undefined) this.#answer(request, { error: `job ${jobId} is not watched` });
      else jobs.add(jobId);
    }
    store.requests.forgetAnswered(clock.now() - ANSWERS_MS);
    return jobs;
  }

  /** Runs one pass, which answers all requests from before it began; undefined for an unknown job. */
  async run(polls: JobPolls, pass: RequestedPass): Promise<PassEnd | undefined> {
    const { store } = this.#context;
    const { jobId } = polls;
    const job = store.jobs.get(jobId);
    if (job === undefined) return undefined;
    const requests = store.requests.open('pass').filter((request) => request.jobId === jobId);
    const settles = pass.isSettling();
    const isLast = settles || job.state === 'ending';
    for (const { requestId } of requests) this.#serving.add(requestId);
    try {
      const summary = await completePass(polls, { ...this.#context, isLast, signal: pass.signal });
      await pass.onThrough(summary.appended);
      const settled = settles && summary.appended === 0 && pass.isSettling();
      const state = await this.#conclude(job, summary, { settled, signal: pass.signal });
      for (const request of requests) this.#answer(request, { summary });
      const more = store.requests.open('pass').some((request) => request.jobId === jobId);
      return { job, state, isLast, again: more || state === 'ending' };
    } catch (thrown) {
      const failure = asJobtailError(thrown);
      if (pass.signal.aborted) throw failure;
      const { message, code, hint } = failure;
      for (const request of requests) this.#answer(request, { error: message, code, hint });
      const settled = settles && pass.isGivenUp(failure);
      const state = settled
        ? await this.#conclude(job, summaryWithoutPass(jobId, store, message), { settled, signal: pass.signal })
        : job.state;
      return { job, state, isLast, failure, again: false };
    } finally {
      for (const { requestId } of requests) this.#serving.delete(requestId);
    }
  }

  async #conclude(
    job: JobRow,
    summary: PassSummary,
    { settled, signal }: { readonly settled: boolean; readonly signal: AbortSignal },
  ): Promise<WatchState> {
    const { store, results, remote } = this.#context;
    const { jobId } = job;
    // A command may have changed the state meanwhile, which takes precedence.
    const current = store.jobs.get(jobId)?.state ?? job.state;
    const ended = job.state === 'ending' && current === 'ending';
    const state = ended ? 'ended' : settled && current === 'watched' ? 'settled' : current;
    store.jobs.setState(jobId, state);
    if (state !== 'watched') await results.endTransfer(jobId, { remote, signal });
    const { verified } = summary;
    const openEnds = summary.openEnds.map((end) => `${keyText(end)}: ${end.reason}`);
    this.#log[openEnds.length > 0 ? 'warn' : 'info']({ jobId, state, verified, openEnds }, 'complete pass ended');
    return state;
  }

  #answer(request: RequestRow, answer: PassAnswer): void {
    this.#context.store.requests.answer(request.requestId, JSON.stringify(answer));
  }
}
