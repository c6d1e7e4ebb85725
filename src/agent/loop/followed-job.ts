/** One followed job: its life, and its runs, which are due, end or fail. */
import type { BackOff } from '../../back-off.ts';
import { asJobtailError, type ErrorPolicy, type JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import { EARLY_START_HINT, type JobInformation, startedEarlyMs } from '../../job-information.ts';
import { printable } from '../../printable.ts';
import type { JobRow } from '../../store/rows.ts';
import { STATE } from '../failures.ts';
import { saveDeleted } from '../pass/deleted-jobs.ts';
import { JobPolls } from '../poll/poll.ts';
import { type DueRun, DueRuns } from '../schedule/due-runs.ts';
import { Pace } from '../schedule/pace.ts';
import type { AgentContext } from './context.ts';
import {
  afterPoll,
  endOf,
  failureOf,
  happened,
  isFollowed,
  type JobEvent,
  type Life,
  lastReported,
  NOT_FOLLOWED,
  quietBefore,
  reportEvent,
  retryInMs,
  rowOf,
  WORK,
} from './job-life.ts';
import { type Delays, mayStillCome, type OneJob } from './one-job.ts';
import { PassRun } from './pass-run.ts';
import { PollRun } from './poll-run.ts';
import { runResults } from './results-run.ts';
import { RunFailures } from './run-failures.ts';
import { SearchRun } from './search-run.ts';
import { Stall } from './stall.ts';

/** Maximum time that a search waits for the listing of a sync. */
const LISTING_MS = 30_000;
/** Maximum time that results wait until tasks are found; for a poll that runs they wait anyway. */
const TASKS_MS = 4_000;

export class FollowedJob implements OneJob {
  readonly jobId: JobId;
  readonly context: AgentContext;
  readonly polls: JobPolls;
  readonly pace: Pace;
  readonly due: DueRuns;
  readonly failures: RunFailures;
  readonly stall: Stall;
  /** The text of the last report, if it is stored and the job was not requested since. */
  storedReport: string | undefined;
  /** The number of the last request for its own report; 0 if there was none. */
  lastRequest = 0;
  /** The pause after its own report failed. */
  reportPause: BackOff | undefined;
  readonly #onOver: () => void;
  readonly #poll: PollRun;
  readonly #search: SearchRun;
  readonly #pass: PassRun;
  readonly #stop = new AbortController();
  #life: Life = NOT_FOLLOWED;
  #begunAt = 0;
  /** The last report. */
  #last: JobInformation | undefined;

  /** `onOver`: called when the job is not followed and has no run. */
  constructor(jobId: JobId, context: AgentContext, onOver: () => void) {
    const { clock, limits, poll, scheduler } = context;
    const { signal } = this.#stop;
    this.jobId = jobId;
    this.context = context;
    this.#onOver = onOver;
    this.polls = new JobPolls(jobId, poll);
    this.pace = new Pace(limits.intervals);
    const run = (kind: DueRun, stop: AbortSignal) => this.#run(kind, stop);
    this.due = new DueRuns({ clock, scheduler, run, onIdle: () => this.#idle(), signal });
    this.failures = new RunFailures(jobId, context);
    this.stall = new Stall(context);
    this.#poll = new PollRun(this);
    this.#search = new SearchRun(this);
    this.#pass = new PassRun(this, this.#search);
  }

  get life(): Life {
    return this.#life;
  }

  get isFollowed(): boolean {
    return isFollowed(this.#life) && !this.#stop.signal.aborted;
  }

  get filesAwaitedMs(): number {
    const { store, clock } = this.context;
    const liveFiles = store.liveFiles.ofJob(this.jobId);
    const areKnown = this.#poll.hasEnded || liveFiles.some(({ relativePath }) => relativePath !== null);
    if (areKnown || (liveFiles.length === 0 && store.taskSearches.get(this.jobId) === undefined)) return 0;
    // The service was not reached, so results do not come either.
    if (this.failures.isFailing('poll')) return TASKS_MS;
    return Math.max(0, this.#begunAt + TASKS_MS - clock.monotonic());
  }

  happened(event: JobEvent, delays: Delays = {}): void {
    const before = this.#life.stage;
    const { due = [], endsRuns = false } = rowOf(before, event);
    this.#life = happened(this.#life, event, this.context.clock.monotonic());
    if (endsRuns) this.due.endAll();
    for (const kind of due) this.#plan(kind, delays[kind]);
    if (!isFollowed(this.#life)) this.due.cancel(WORK);
    if (this.#life.stage === 'over' && before !== 'over') this.pace.quicken();
    if (event === 'reported deleted' && this.#life.stage !== before)
      this.context.log.warn({ jobId: this.jobId }, 'job deleted, its files stay here');
    if (this.due.areIdle) this.#idle();
  }

  wasQuiet(beganAt: number, hasResponse: boolean): void {
    this.#life = afterPoll(this.#life, beganAt, hasResponse, this.context.clock.monotonic());
  }

  checkEnd(): ReturnType<typeof endOf> {
    const end = endOf(this.#life, this.context.clock.monotonic(), mayStillCome(this));
    if (end !== undefined) this.happened(end, { pass: this.failures.remainingMs('pass') });
    return end;
  }

  /** Follows the row of the job, which a command, the configuration or a rule changed. */
  changed(job: JobRow, delayMs: number): void {
    this.storedReport = undefined;
    this.#follow(job, { poll: delayMs, search: delayMs, results: delayMs });
  }

  /** `delays`: of a job that is followed already. */
  #follow(job: JobRow, delays: Delays): void {
    if (this.#stop.signal.aborted) return;
    this.stall.watched(job);
    this.#life = { ...this.#life, settleAfterMs: job.settleAfterMs };
    const isAsked = this.context.asked?.has(this.jobId) ?? true;
    if (job.state === 'ending' && isAsked) this.happened('unwatched');
    else if (job.state !== 'watched' || !isAsked) this.happened('left');
    else if (isFollowed(this.#life)) this.happened('watched', delays);
    else this.#begin(job, delays.poll ?? 0);
  }

  #begin(job: JobRow, delayMs: number): void {
    const { store, clock, log, jobService, limits } = this.context;
    const { jobId, source, results } = job;
    this.#begunAt = clock.monotonic();
    // The first poll proves which listed files are live files.
    const resultsMs = store.liveFiles.ofJob(jobId).length > 0 ? limits.intervals.minIntervalMs : 0;
    this.happened('watched', { poll: delayMs, search: results ? LISTING_MS : delayMs, results: resultsMs });
    const last = jobService === null ? undefined : store.jobInformation.get(jobId);
    const event = lastReported(last);
    if (event !== undefined) this.happened(event);
    const quietSince = clock.monotonic() - Math.max(0, clock.now() - quietBefore(job, last));
    this.#life = { ...this.#life, quietSince };
    this.stall.followed(last, quietSince);
    this.#last = last?.information;
    log.info({ jobId, source }, 'job followed');
  }

  /** The middleware refuses to report the job, or is not available. */
  unreported(isRefused: boolean): void {
    if (!this.isFollowed) return;
    if (isRefused) this.happened('report refused');
    this.#search.reported(undefined);
  }

  /** Applies a report of the middleware; `newTasks` of its tasks are new. */
  reported(information: JobInformation, newTasks: number): void {
    if (!this.isFollowed) return;
    const { state, tasks } = information;
    const { jobId, context } = this;
    this.#search.reported(tasks.length > 0);
    if (state !== (this.#last?.state ?? null))
      context.log.info({ jobId, jobState: printable(state ?? 'none') }, 'job state changed');
    const earlyMs = startedEarlyMs(information);
    if (earlyMs > 0 && (this.#last === undefined || startedEarlyMs(this.#last) === 0))
      context.log.warn({ jobId, earlyMs, hint: EARLY_START_HINT }, 'job started before its submission');
    const event = reportEvent(information, this.#last?.startTime ?? null);
    this.#last = information;
    this.stall.reported(state);
    // Saved before the last pass: a settled job is not reported again.
    if (event === 'reported deleted' && this.#life.stage !== 'deleted') saveDeleted(information, context);
    this.happened(event);
    if (newTasks === 0) return;
    this.happened('growth');
    this.#plan('poll');
  }

  tryAgain(isMended: (policy: ErrorPolicy) => boolean): void {
    for (const kind of this.failures.mended(isMended)) this.due.plan(kind);
  }

  /** Cancels calls in flight; resolves when no run is left. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.due.end();
  }

  #idle(): void {
    if (!this.isFollowed) this.#onOver();
  }

  #plan(kind: DueRun, delayMs?: number): void {
    if (kind === 'search') this.#search.plan(delayMs);
    else this.due.plan(kind, delayMs);
  }

  /** A run is entered, admitted and left here; the others that it waits for have ended. */
  async #run(kind: DueRun, signal: AbortSignal): Promise<void> {
    const { failures } = this;
    try {
      if (kind !== 'pass' && !this.isFollowed) return;
      if (kind === 'poll') await this.#poll.run(signal);
      else if (kind === 'results') await runResults(this, (names) => this.#search.listed(names), signal);
      else if (kind === 'search') await this.#search.run(signal);
      else return await this.#pass.run(signal).then(() => this.#resume());
      if (failures.isFailing(kind)) await failures.succeeded([kind], { grew: false });
      failures.logged.cleared(failures.scopeOf(kind));
    } catch (thrown) {
      const error = asJobtailError(thrown);
      if (error.code !== 'aborted' || !signal.aborted) this.#failed(kind, error);
      else if (kind === 'pass' && this.isFollowed) this.#resume();
    }
  }

  /** After a pass: what became due beside it was dropped, and a command may have changed the row of the job meanwhile. */
  #resume(): void {
    const { store, limits } = this.context;
    const { intervals, resultsIntervalMs: results } = limits;
    const job = store.jobs.get(this.jobId);
    const pass = this.failures.remainingMs('pass');
    if (job !== undefined) this.#follow(job, { poll: intervals.minIntervalMs, search: LISTING_MS, results, pass });
  }

  #failed(kind: DueRun, error: JobtailError): void {
    const { context, failures, due } = this;
    const event = failureOf('poll', error, failures.hasRespondedToOthers(kind));
    // In an outage, a search misses the tasks of a job whose polls have no file to ask for.
    if (event !== undefined && (kind === 'poll' || (kind === 'search' && event === 'poll failed')))
      this.happened(event);
    const delayMs = failures.failed(kind, error);
    if (kind === 'poll') this.checkEnd();
    try {
      if (kind === 'pass') this.#resume();
    } catch (thrown) {
      context.failures.failed(STATE, asJobtailError(thrown));
    }
    if (kind !== 'pass' && !this.isFollowed) return;
    due.plan(kind, retryInMs(this.#life, context.clock.monotonic(), delayMs));
  }
}
