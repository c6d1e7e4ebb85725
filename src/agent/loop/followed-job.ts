/** One followed job: its stage, and its runs, which are due, end or fail. */
import { setMaxListeners } from 'node:events';
import { asJobtailError, type ErrorPolicy, type JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import type { JobInformation } from '../../job-information.ts';
import { printable } from '../../printable.ts';
import type { JobRow } from '../../store/rows.ts';
import { STATE } from '../failures.ts';
import { DELETED, saveDeleted } from '../pass/deleted-jobs.ts';
import { JobPolls } from '../poll/poll.ts';
import type { AgentContext } from './agent-context.ts';
import { type DueRun, DueRuns } from './due-runs.ts';
import { JobStage } from './job-stage.ts';
import type { OneJob } from './one-job.ts';
import { Pace } from './pace.ts';
import { PassRun } from './pass-run.ts';
import { PollRun } from './poll-run.ts';
import { runResults } from './results-run.ts';
import { RunFailures } from './run-failures.ts';
import { SearchRun } from './search-run.ts';

export interface JobOwner {
  /** Called when a job is followed, or followed with another request. */
  readonly onFollowed: () => void;
  /** Called when the job is not followed and has no run. */
  readonly onOver: (job: FollowedJob) => void;
}

/** Maximum time that a search waits for the listing of a sync. */
const LISTING_MS = 30_000;

export class FollowedJob {
  readonly jobId: JobId;
  /** The text of the last report, if it is stored and the job was not requested since. */
  storedReport: string | undefined;
  readonly #job: OneJob;
  readonly #owner: JobOwner;
  readonly #poll: PollRun;
  readonly #search: SearchRun;
  readonly #pass: PassRun;
  readonly #stop = new AbortController();
  #jobState: string | null = null;

  constructor(jobId: JobId, context: AgentContext, owner: JobOwner) {
    const { clock, limits, poll, scheduler } = context;
    this.jobId = jobId;
    this.#owner = owner;
    this.#job = {
      jobId,
      context,
      polls: new JobPolls(jobId, poll),
      stage: new JobStage(clock),
      pace: new Pace(limits.intervals),
      due: new DueRuns({ clock, scheduler, run: (kind) => this.#run(kind), onIdle: () => this.#idle() }),
      failures: new RunFailures(jobId, context),
      signal: this.#stop.signal,
    };
    this.#poll = new PollRun(this.#job);
    this.#search = new SearchRun(this.#job);
    this.#pass = new PassRun(this.#job, this.#poll);
    // Every call in flight adds a listener.
    setMaxListeners(0, this.#stop.signal);
  }

  get isFollowed(): boolean {
    return this.#job.stage.isFollowed;
  }

  follow(job: JobRow, delayMs: number): void {
    const { stage, due, context } = this.#job;
    if (stage.current === 'stopped') return;
    const { store, log } = context;
    const { jobId, source } = job;
    this.storedReport = undefined;
    due.plan('poll', delayMs);
    this.#owner.onFollowed();
    const before = context.jobService === null ? undefined : store.jobInformation.get(jobId);
    this.#poll.followed(job);
    if (!stage.follow(job, before)) {
      this.#search.plan(delayMs);
      if (job.results && !due.has('results')) due.plan('results', delayMs);
      return;
    }
    this.#jobState = before?.information.state ?? null;
    this.#search.plan(job.results ? LISTING_MS : delayMs);
    log.info({ jobId, source }, 'job followed');
    if (!job.results) return;
    // The first poll proves which listed files are live files.
    const { minIntervalMs } = context.limits.intervals;
    due.plan('results', store.liveFiles.ofJob(jobId).length > 0 ? minIntervalMs : 0);
  }

  /** The middleware refuses to report the job. */
  refused(): void {
    this.#job.stage.refused();
    this.unreported();
  }

  /** The middleware is not available. */
  unreported(): void {
    if (this.isFollowed) this.#search.reported(undefined);
  }

  /** Applies a report of the middleware; `newTasks` of its tasks are new. */
  reported(information: JobInformation, newTasks: number): void {
    const { stage, pace, due, context } = this.#job;
    const { jobId } = this;
    const { state: jobState, tasks } = information;
    if (!this.isFollowed) return;
    this.#search.reported(tasks.length > 0);
    if (jobState !== this.#jobState)
      context.log.info({ jobId, jobState: printable(jobState ?? 'none') }, 'job state changed');
    this.#jobState = jobState;
    if (jobState === DELETED) {
      // Saved before the last pass: a settled job is not reported again.
      if (stage.current !== 'deleted') saveDeleted(information, context);
      this.#endDeleted();
      return;
    }
    const before = stage.report(jobState);
    const isNewlyOver = stage.current === 'over' && before !== 'over';
    if (isNewlyOver) pace.quicken();
    if (isNewlyOver || newTasks > 0) due.plan('poll', 0);
    if (isNewlyOver) due.plan('results', 0);
  }

  /** A requested pass is not merged with one that began before. */
  startPass(isAsked: boolean): void {
    const { due } = this.#job;
    if (isAsked || !due.has('pass')) due.plan('pass', 0);
  }

  leave(): void {
    const { stage, due } = this.#job;
    stage.leave();
    due.cancel();
    if (due.areIdle) this.#idle();
  }

  tryAgain(isMended: (policy: ErrorPolicy) => boolean): void {
    for (const kind of this.#job.failures.mended(isMended)) this.#job.due.plan(kind, 0);
  }

  /** Cancels calls in flight; resolves when no run is left. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#poll.stop();
    this.#job.stage.stop();
    await this.#job.due.end();
  }

  #idle(): void {
    if (!this.isFollowed) this.#owner.onOver(this);
  }

  async #run(kind: DueRun): Promise<void> {
    try {
      if (kind === 'pass') return await this.#runPass();
      if (kind === 'poll') await this.#poll.enter().then(() => this.#runPoll());
      else if (kind === 'results') await runResults(this.#job, (names) => this.#search.listed(names));
      else await this.#search.run();
      await this.#clear(kind);
    } catch (thrown) {
      const error = asJobtailError(thrown);
      if (error.code !== 'aborted' || !this.#stop.signal.aborted) this.#failed(kind, error);
    } finally {
      if (kind === 'poll') this.#poll.leave();
    }
  }

  async #clear(kind: DueRun): Promise<void> {
    const { failures } = this.#job;
    failures.logged.cleared(failures.scopeOf(kind));
    if (failures.isFailing(kind)) await failures.succeeded([kind], { grew: false });
  }

  async #runPoll(): Promise<void> {
    const { stage, due } = this.#job;
    if (!this.isFollowed) return;
    if (stage.current === 'deleted') due.plan('pass', 0);
    else if (!(await this.#poll.run())) this.#endDeleted();
  }

  async #runPass(): Promise<void> {
    const end = await this.#pass.run();
    if (end === undefined) return;
    if (end.state === 'watched') this.#resume(end.job);
    else this.leave();
    if (end.again) this.#job.due.plan('pass', 0);
  }

  #resume(job: JobRow): void {
    const { due, context } = this.#job;
    const { intervals, resultsIntervalMs } = context.limits;
    if (!this.isFollowed) {
      this.follow(job, intervals.minIntervalMs);
      return;
    }
    due.plan('poll', intervals.minIntervalMs);
    this.#search.plan(LISTING_MS);
    if (job.results) due.plan('results', Math.max(intervals.minIntervalMs, resultsIntervalMs));
  }

  #failed(kind: DueRun, error: JobtailError): void {
    const { stage, failures, due, context } = this.#job;
    // The polls go on beside failures of the others, which delay the end for a limited time.
    if (kind === 'poll' || kind === 'search') stage.endQuiet();
    else if (kind === 'pass') stage.delayed();
    const delayMs = failures.failed(kind, error);
    try {
      const job = context.store.jobs.get(this.jobId);
      if (kind === 'pass' && job?.state === 'watched') this.#resume(job);
    } catch (thrown) {
      context.failures.failed(STATE, asJobtailError(thrown));
    }
    if (kind === 'pass' || this.isFollowed) due.plan(kind, Math.min(delayMs, stage.overdueInMs));
  }

  /** Ends a deleted job: no more requests, and its mirrors stay. */
  #endDeleted(): void {
    const { stage, due, context } = this.#job;
    const before = stage.report(DELETED);
    if (stage.current === before) return;
    context.log.warn({ jobId: this.jobId }, 'job deleted, its files stay here');
    due.cancel();
    due.plan('pass', 0);
  }
}
