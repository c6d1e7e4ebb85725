/** The complete passes of one followed job: those that end it, which are retried, and those that commands request. */
import { asJobtailError, type JobtailError, refusalOf } from '../../errors.ts';
import { type JobId, keyText } from '../../job.ts';
import { type JobInformation, phaseOf } from '../../job-information.ts';
import type { JobRow, RequestRow } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import {
  completePass,
  NotCompared,
  type PassAnswer,
  type PassSummary,
  passOfDeleted,
  summaryWithoutPass,
} from '../pass/complete-pass.ts';
import { DELETED, reportedNow } from '../pass/deleted-jobs.ts';
import type { Remote } from '../ports/server.ts';
import { DUE_RUNS } from '../schedule/due-runs.ts';
import type { AgentContext } from './context.ts';
import { endOf, failureOf, isFollowed, isGivenUp, type JobEvent, rowOf } from './job-life.ts';
import { mayStillCome, type OneJob } from './one-job.ts';
import type { SearchRun } from './search-run.ts';

const ANSWERS_MS = 24 * 60 * 60_000;

const isActive = (report: JobInformation | undefined) => phaseOf(report?.state ?? null) === 'active';

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
  readonly #search: SearchRun;

  constructor(job: OneJob, search: SearchRun) {
    this.#job = job;
    this.#search = search;
  }

  /** Answers all requests from before it began. Rejects if it must be retried. */
  async run(signal: AbortSignal): Promise<void> {
    const { jobId, context, failures, due } = this.#job;
    const { store, served } = context;
    const job = store.jobs.get(jobId);
    if (job === undefined) return;
    const requests = store.requests.open('pass').filter((request) => request.jobId === jobId);
    // If no command waits for it, a pass must not delay running jobs.
    const isWanted = requests.length > 0 || this.#job.life.stage === 'ending';
    // Its job ended while the pass waited for other runs.
    if (!isWanted && !isFollowed(this.#job.life)) return;
    const remote = isWanted ? context.remote : context.waiting.wanted;
    for (const { requestId } of requests) served.add(requestId);
    let isLast = this.#isLast;
    try {
      const reported = await reportedNow(jobId, { ...context, signal });
      // It was started again since the last list.
      if (isActive(reported) && isFollowed(this.#job.life)) this.#job.happened('reported active');
      isLast &&= this.#isLast;
      const summary =
        reported?.state === DELETED ? this.#deleted(signal) : await this.#complete(reported, remote, isLast, signal);
      await this.#passed(summary.appended);
      const equal = isLast && this.#isLast ? 'pass equal' : undefined;
      this.#conclude(job, summary, summary.appended > 0 ? 'pass unequal' : equal);
      for (const request of requests) answer(store, request, { summary });
      await this.#endTransfer(signal);
    } catch (thrown) {
      const failure = asJobtailError(thrown);
      if (signal.aborted) throw failure;
      for (const request of requests) answer(store, request, refusalOf(failure));
      if (isLast) await this.#failed(job, failure, signal);
      // The command has its answer, and does not retry. One that serves the state prints that answer, not the log as well.
      else if (context.asked === undefined) failures.logged.failed(failures.scopeOf('pass'), failure, 0, true);
      // A job that runs needs no last pass, such as one that failed before.
      if (this.#job.life.stage === 'active' && failures.isFailing('pass'))
        await failures.succeeded(['pass'], { grew: false });
    } finally {
      for (const { requestId } of requests) served.delete(requestId);
      // Of a command that came meanwhile, or of this pass, if it was stopped.
      if (store.requests.open('pass').some((request) => request.jobId === jobId)) due.plan('pass');
    }
  }

  /** What is left of a deleted job: of a followed one, in the pass that its deletion makes due instead of this one. */
  #deleted(signal: AbortSignal): PassSummary {
    const { jobId, context } = this.#job;
    this.#job.happened('reported deleted');
    signal.throwIfAborted();
    return passOfDeleted(jobId, context.store);
  }

  async #complete(reported: JobInformation | undefined, remote: Remote, isLast: boolean, signal: AbortSignal) {
    const { life, context, polls } = this.#job;
    if (!isFollowed(life)) await this.#search.once(reported, signal);
    const onCompared = () => {
      if (!isLast && isFollowed(this.#job.life)) this.#job.due.admitPolls(context.limits.intervals.minIntervalMs);
    };
    return await completePass(polls, { ...context, remote, isLast, isActive: isActive(reported), signal, onCompared });
  }

  get #isLast(): boolean {
    const { life, context } = this.#job;
    return life.stage === 'ending' || endOf(life, context.clock.monotonic(), mayStillCome(this.#job)) === 'end due';
  }

  async #passed(appended: number): Promise<void> {
    const { failures, stall, context } = this.#job;
    if (appended > 0) {
      stall.grew();
      context.events.onAppended(appended);
    }
    await failures.succeeded(DUE_RUNS, { grew: appended > 0 });
    for (const kind of DUE_RUNS) failures.logged.cleared(failures.scopeOf(kind));
  }

  /** Rejects with the failure if the pass must be retried. */
  async #failed(job: JobRow, failure: JobtailError, signal: AbortSignal): Promise<void> {
    const { jobId, context, failures } = this.#job;
    const { store, clock } = context;
    const event = failureOf('pass', failure, failures.hasRespondedToOthers('pass'));
    const isRefused = failure instanceof NotCompared || event !== undefined;
    if (isRefused) this.#job.happened('pass refused');
    // An outage gives nothing up, however often the pass was refused before; and a job that is active goes on.
    if (!isRefused || !isGivenUp(this.#job.life, clock.monotonic()) || !this.#isLast) throw failure;
    // Before the state: a kill in between leaves no settled job with a result in flux.
    store.results.endUnfinished(jobId, failure.message);
    const summary = summaryWithoutPass(jobId, store, failure.message);
    // Stored before the state, too: a job that is settled without a last pass is never read as proven.
    await failures.givenUp('pass', failure);
    if (!this.#conclude(job, summary, 'given up')) throw failure;
    await this.#endTransfer(signal);
  }

  /** After the answers: the service may be away, or ask for a pause of an hour. */
  async #endTransfer(signal: AbortSignal): Promise<void> {
    const { jobId, context } = this.#job;
    const { store, results, remote } = context;
    if (store.jobs.get(jobId)?.state !== 'watched') await results.endTransfer(jobId, { remote, signal });
  }

  /** `job`: its row when the pass began; what a command changed meanwhile takes precedence. Returns whether it ended. */
  #conclude(job: JobRow, { verified, openEnds, isListingEmpty }: PassSummary, event: JobEvent | undefined): boolean {
    const { jobId, context, life } = this.#job;
    const { store, log } = context;
    const { next } = event === undefined ? {} : rowOf(life.stage, event);
    const isEnd = next === 'settled' || next === 'ended';
    const { state, isUnchanged } = store.transaction(() => {
      const now = store.jobs.get(jobId);
      // A request to watch it that came during the pass may name other files.
      const isUnchanged = now?.state === job.state && (next === 'ended' || now.revision === job.revision);
      if (isEnd && isUnchanged) store.jobs.setState(jobId, next);
      return { state: store.jobs.get(jobId)?.state, isUnchanged };
    });
    if (event !== undefined && (!isEnd || isUnchanged)) this.#job.happened(event);
    const open = openEnds.map((end) => `${keyText(end)}: ${end.reason}`);
    log[open.length > 0 ? 'warn' : 'info']({ jobId, state, verified, openEnds: open }, 'complete pass ended');
    if (isListingEmpty)
      log.warn({ jobId, hint: `agent status ${jobId} names the cause` }, 'results may be missing: no file is listed');
    return isEnd && isUnchanged;
  }
}
