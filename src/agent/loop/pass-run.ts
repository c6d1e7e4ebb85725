/** The complete passes of one followed job: those that end it, which are retried, and those that commands request. */
import { asJobtailError, EXIT, type JobtailError } from '../../errors.ts';
import { type JobId, keyText } from '../../job.ts';
import type { JobRow, RequestRow, WatchState } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import { completePass, type PassAnswer, type PassSummary, summaryWithoutPass } from '../pass/complete-pass.ts';
import type { AgentContext } from './agent-context.ts';
import { DUE_RUNS } from './due-runs.ts';
import type { OneJob } from './one-job.ts';
import type { PollRun } from './poll-run.ts';

interface PassEnd {
  readonly job: JobRow;
  readonly state: WatchState;
  /** Whether another pass is needed: requested meanwhile, or because the job must end. */
  readonly again: boolean;
}

const ANSWERS_MS = 24 * 60 * 60_000;

const answer = ({ requests }: Store, { requestId }: RequestRow, text: PassAnswer) =>
  requests.answer(requestId, JSON.stringify(text));

/** Jobs with requests for a pass that no pass serves. A request for an unknown job is answered with an error. */
export function jobsWithRequests({ store, clock, served }: AgentContext): Set<JobId> {
  const jobs = new Set<JobId>();
  for (const request of store.requests.open('pass')) {
    const { requestId, jobId } = request;
    if (served.has(requestId)) continue;
    if (store.jobs.get(jobId) === undefined) answer(store, request, { error: `job ${jobId} is not watched` });
    else jobs.add(jobId);
  }
  store.requests.forgetAnswered(clock.now() - ANSWERS_MS);
  return jobs;
}

export class PassRun {
  readonly #job: OneJob;
  readonly #poll: PollRun;

  constructor(job: OneJob, poll: PollRun) {
    this.#job = job;
    this.#poll = poll;
  }

  /** Answers all requests from before it began. Undefined for an unknown job; rejects if it must be retried. */
  async run(): Promise<PassEnd | undefined> {
    const { jobId, context, polls, failures, signal } = this.#job;
    const { store, served } = context;
    const job = store.jobs.get(jobId);
    if (job === undefined) return undefined;
    const requests = store.requests.open('pass').filter((request) => request.jobId === jobId);
    const settles = this.#poll.isSettling;
    const isLast = settles || job.state === 'ending';
    for (const { requestId } of requests) served.add(requestId);
    try {
      // If no command waits for it, a pass must not delay running jobs.
      const remote = requests.length > 0 || job.state === 'ending' ? context.remote : context.waiting.wanted;
      const summary = await completePass(polls, { ...context, remote, isLast, signal });
      await this.#passed(summary.appended);
      const state = await this.#conclude(job, summary, settles && summary.appended === 0 && this.#poll.isSettling);
      for (const request of requests) answer(store, request, { summary });
      const more = store.requests.open('pass').some((request) => request.jobId === jobId);
      return { job, state, again: more || state === 'ending' };
    } catch (thrown) {
      const failure = asJobtailError(thrown);
      if (signal.aborted) throw failure;
      const { message, code, hint } = failure;
      for (const request of requests) answer(store, request, { error: message, code, hint });
      const end = { job, again: false };
      if (!isLast) {
        // The command has its answer, and does not retry.
        failures.logged.failed(failures.scopeOf('pass'), failure, 0, true);
        return { ...end, state: job.state };
      }
      if (!settles || !this.#isGivenUp(failure)) throw failure;
      // Before the state: a kill in between leaves no settled job with a result in flux.
      store.results.endUnfinished(jobId, message);
      const state = await this.#conclude(job, summaryWithoutPass(jobId, store, message), true);
      if (state !== 'settled') throw failure;
      failures.givenUp('pass', failure);
      return { ...end, state };
    } finally {
      for (const { requestId } of requests) served.delete(requestId);
    }
  }

  async #passed(appended: number): Promise<void> {
    const { failures } = this.#job;
    this.#poll.grew(appended);
    for (const kind of DUE_RUNS) failures.logged.cleared(failures.scopeOf(kind));
    await failures.succeeded(DUE_RUNS, { grew: appended > 0 });
  }

  async #conclude(job: JobRow, { verified, openEnds }: PassSummary, settled: boolean): Promise<WatchState> {
    const { jobId, context, signal } = this.#job;
    const { store, log } = context;
    const { results, remote } = context;
    // A command may have changed the state meanwhile, which takes precedence.
    const current = store.jobs.get(jobId)?.state ?? job.state;
    const ended = job.state === 'ending' && current === 'ending';
    const state = ended ? 'ended' : settled && current === 'watched' ? 'settled' : current;
    store.jobs.setState(jobId, state);
    if (state !== 'watched') await results.endTransfer(jobId, { remote, signal });
    const open = openEnds.map((end) => `${keyText(end)}: ${end.reason}`);
    log[open.length > 0 ? 'warn' : 'info']({ jobId, state, verified, openEnds: open }, 'complete pass ended');
    return state;
  }

  /** Whether the service answers, and the pass has failed for too long. A full disk or an outage is waited for. */
  #isGivenUp({ policy }: JobtailError): boolean {
    const { jobId, context, stage } = this.#job;
    if (!stage.isOverdue || (policy.exitCode !== EXIT.service && policy.exitCode !== EXIT.notFound)) return false;
    // The polls of live files work, so the service answers.
    return !policy.isOfService || context.store.liveFiles.ofJob(jobId).length > 0;
  }
}
