/** One followed job: its due runs, polling interval, failures, and the memory of its polls. */
import { setMaxListeners } from 'node:events';
import { asJobtailError, type ErrorPolicy, type JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import { type JobInformation, phaseOf } from '../../job-information.ts';
import { printable } from '../../printable.ts';
import type { JobRow } from '../../store/rows.ts';
import { CallSlot, QueuedRemote } from '../calls.ts';
import { needsAnotherPoll } from '../live/steps.ts';
import { DELETED, isDeleted, saveDeleted } from '../pass/complete-pass.ts';
import type { RequestedPasses } from '../pass/job-end.ts';
import { JobPolls, type Polled } from '../poll/poll.ts';
import type { JobService } from '../ports.ts';
import type { Results } from '../results/results.ts';
import { JobRuns, type RunsContext, STATE } from './job-runs.ts';
import { JobSearch, type JobSearchContext } from './job-search.ts';
import { JobStage } from './job-stage.ts';
import { Pace, restOf, withJitter } from './pace.ts';
import { DUE_RUNS, type DueRun, DueRuns, type Scheduler } from './scheduler.ts';

export interface JobContext extends RunsContext, JobSearchContext {
  readonly scheduler: Scheduler;
  readonly results: Results;
  readonly jobService: JobService | null;
  readonly passes: RequestedPasses;
  readonly resultsIntervalMs: number;
  /** A running job without growth for this time is stalled; null: never. */
  readonly stallAfterMs: number | null;
  readonly onAppended?: ((bytes: number) => void) | undefined;
  /** Called when a job is followed, or followed with another request. */
  readonly onFollowed: () => void;
  /** Called when the job is not followed and has no run. */
  readonly onOver: (job: FollowedJob) => void;
}

/** Maximum delay of the commit of a poll without news. */
const QUIET_COMMIT_MS = 1_000;
/** Maximum time that a search waits for the listing of a sync. */
const LISTING_MS = 30_000;
/** A job that is over, has no live file left, and whose listing is refused this often in a row was deleted. */
const MIN_REFUSED_LISTINGS = 2;

export class FollowedJob {
  readonly jobId: JobId;
  /** The text of the last report, if it is stored and the job was not requested since. */
  storedReport: string | undefined;
  readonly #context: JobContext;
  readonly #due: DueRuns;
  readonly #polls: JobPolls;
  readonly #runs: JobRuns;
  readonly #search: JobSearch;
  readonly #pace: Pace;
  readonly #stop = new AbortController();
  readonly #stage: JobStage;
  #jobState: string | null = null;
  /**
   * The result of the last poll: no live file; a truncated or rewritten one, maybe from the archive of a deleted job;
   * or others.
   */
  #contents: 'none' | 'different' | 'others' = 'others';
  #refusedListings = 0;
  #stallAfterMs: number | null = null;
  #isStalled = false;

  constructor(jobId: JobId, context: JobContext) {
    const { clock, scheduler, poll, intervals } = context;
    this.jobId = jobId;
    this.#context = context;
    this.#due = new DueRuns({ clock, scheduler, run: (kind) => this.#run(kind), onIdle: () => this.#idle() });
    this.#polls = new JobPolls(jobId, poll);
    this.#runs = new JobRuns(jobId, context);
    this.#search = new JobSearch(jobId, this.#due, context);
    this.#pace = new Pace(intervals);
    this.#stage = new JobStage(clock);
    // Every call in flight adds a listener.
    setMaxListeners(0, this.#stop.signal);
  }

  get isFollowed(): boolean {
    return this.#stage.isFollowed;
  }

  follow(job: JobRow, delayMs: number): void {
    if (this.#stage.current === 'stopped') return;
    const { intervals, log, poll, onFollowed, jobService } = this.#context;
    const { jobId, source } = job;
    const { store } = poll;
    this.storedReport = undefined;
    this.#due.plan('poll', delayMs);
    onFollowed();
    const before = jobService === null ? undefined : store.jobInformation.get(jobId);
    this.#stallAfterMs = job.stallAfterMs ?? this.#context.stallAfterMs;
    if (!this.#stage.follow(job, before)) {
      this.#search.plan(delayMs);
      if (job.results && !this.#due.has('results')) this.#due.plan('results', delayMs);
      return;
    }
    this.#jobState = before?.information.state ?? null;
    this.#isStalled = job.stalledAt !== null;
    this.#search.plan(job.results ? LISTING_MS : delayMs);
    log.info({ jobId, source }, 'job followed');
    if (!job.results) return;
    // The first poll proves which listed files are live files.
    this.#due.plan('results', store.liveFiles.ofJob(jobId).length > 0 ? intervals.minIntervalMs : 0);
  }

  /** The middleware refuses to report the job. */
  refused(): void {
    this.#stage.refused();
    this.unreported();
  }

  /** The middleware is not available. */
  unreported(): void {
    if (this.isFollowed) this.#search.reported(undefined);
  }

  /** Applies a report of the middleware; `newTasks` of its tasks are new. */
  reported(information: JobInformation, newTasks: number): void {
    const { state: jobState, tasks } = information;
    if (!this.isFollowed) return;
    this.#search.reported(tasks.length > 0);
    const { jobId } = this;
    if (jobState !== this.#jobState) {
      this.#context.log.info({ jobId, jobState: printable(jobState ?? 'none') }, 'job state changed');
    }
    this.#jobState = jobState;
    if (jobState === DELETED) {
      const { poll, clock } = this.#context;
      // Saved before the last pass: a settled job is not reported again.
      if (this.#stage.current !== 'deleted') saveDeleted(information, poll.store, clock);
      this.#endDeleted();
      return;
    }
    const before = this.#stage.report(jobState);
    const { current } = this.#stage;
    const isNewlyOver = current === 'over' && before !== 'over';
    const isNewlySubmitted = before === 'unsubmitted' && current !== before;
    if (isNewlyOver || isNewlySubmitted) this.#pace.quicken();
    if (isNewlySubmitted) this.#polls.retryFailed();
    if (isNewlyOver || isNewlySubmitted || newTasks > 0) this.#due.plan('poll', 0);
  }

  /**
   * Starts a pass unless one runs or waits for its retry. A requested pass is not merged with one that began before.
   */
  startPass(isAsked: boolean): void {
    if (isAsked || !this.#due.has('pass')) this.#due.plan('pass', 0);
  }

  leave(): void {
    this.#stage.send('leave');
    this.#due.cancel();
    if (!this.#due.areIdle) return;
    this.#idle();
  }

  tryAgain(isMended: (policy: ErrorPolicy) => boolean): void {
    for (const kind of this.#runs.mended(isMended)) this.#due.plan(kind, 0);
  }

  /** Cancels calls in flight; resolves when no run is left. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#stage.send('stop');
    await this.#due.end();
  }

  #idle(): void {
    if (!this.isFollowed) this.#context.onOver(this);
  }

  async #run(kind: DueRun): Promise<void> {
    try {
      if (kind === 'poll') await this.#poll();
      else if (kind === 'results') await this.#syncResults();
      else if (kind === 'search') await this.#searchTasks();
      else await this.#pass();
      await this.#clear(kind);
    } catch (thrown) {
      const error = asJobtailError(thrown);
      if (error.code !== 'aborted' || !this.#stop.signal.aborted) this.#failed(kind, error);
    }
  }

  async #clear(kind: DueRun): Promise<void> {
    this.#runs.failures.cleared(this.#runs.scopeOf(kind));
    if (this.#runs.isFailing(kind)) await this.#runs.succeeded([kind], { grew: false });
  }

  async #poll(): Promise<void> {
    if (!this.isFollowed) return;
    if (this.#stage.current === 'deleted') return this.#due.plan('pass', 0);
    const { calls, remote, clock, random, poll, intervals } = this.#context;
    const { signal } = this.#stop;
    const { store } = poll;
    if (this.#contents === 'different' && (await isDeleted(this.jobId, { ...this.#context, store, signal })))
      return this.#endDeleted();
    // A slow or failing job must not delay the others.
    const isPatient = this.#pace.isSlow || this.#runs.isFailing('poll');
    const slot = new CallSlot(calls, isPatient ? 'patient' : 'live', signal);
    const slotted = new QueuedRemote(remote, slot, isPatient ? 'patient' : 'begun');
    let startedAt = clock.monotonic();
    let hasBegun = false;
    const begin = async () => {
      slot.end();
      await slot.take();
      if (!hasBegun) startedAt = clock.monotonic();
      hasBegun = true;
    };
    const hasWholeFiles = this.#stage.current !== 'unsubmitted';
    const options = { remote: slotted, begin, final: false, hasWholeFiles, signal };
    const polled = await this.#polls.poll(options).finally(() => slot.end());
    const tookMs = clock.monotonic() - startedAt;
    await this.#notePoll(polled);
    const ends = [...polled.ends.values()];
    if (ends.includes('different')) this.#contents = 'different';
    else if (polled.failure === undefined)
      this.#contents = polled.errors.size === 0 && ends.every((end) => end === 'absent') ? 'none' : 'others';
    else if (this.#contents === 'different') this.#contents = 'others';
    if (polled.failure !== undefined) throw polled.failure;
    if (ends.length > 0) this.#runs.worked('poll');

    if (!this.isFollowed) return;
    const isAnswered = ends.length > 0;
    if (polled.appended === 0) this.#stage.polled(startedAt, isAnswered);
    const hasNews = polled.appended > 0 || ends.some(needsAnotherPoll);
    const intervalMs = withJitter(this.#pace.polled(hasNews, tookMs), random());
    const { isSettled, settlesInMs } = this.#stage;
    const nextMs =
      isSettled || !isAnswered ? intervalMs : Math.min(intervalMs, Math.max(intervals.minIntervalMs, settlesInMs));
    if (this.#isSettling) this.#due.plan('pass', 0);
    else this.#due.planAgain('poll', restOf(nextMs, clock.monotonic() - startedAt));
  }

  get #isSettling(): boolean {
    return this.#stage.isSettling(() => {
      const { liveFiles, results, jobs } = this.#context.poll.store;
      if (liveFiles.ofJob(this.jobId).some(({ error }) => error !== null)) return true;
      const { failed, refused } = results.counts(this.jobId);
      return failed > refused && jobs.get(this.jobId)?.results === true;
    });
  }

  /** Logs and stores the result of a poll; waits for the commit only if there was news. */
  async #notePoll({ appended, refused, errors, ends, failure }: Polled): Promise<void> {
    const { jobId } = this;
    const { log } = this.#context;
    for (const [file, error] of errors) this.#runs.failures.failed(`job ${jobId} ${file}`, error);
    for (const file of ends.keys()) this.#runs.failures.worked(`job ${jobId} ${file}`);
    const grew = appended > 0;
    if (grew) log.debug({ jobId, bytes: appended }, 'grown');
    this.#grew(appended);
    if (refused > 0) log.warn({ jobId, refused }, 'unrequested entries ignored');
    const failed = this.#runs.isFailing('poll');
    // An interrupted poll is no success, so its back-off continues.
    if (failure !== undefined) return await this.#runs.succeeded([], { grew, refused });
    const stalledMs = this.#noteStall();
    if (grew || refused > 0 || failed) await this.#runs.succeeded(['poll'], { grew, refused, stalledMs });
    else this.#runs.inBackground(this.#runs.succeeded(['poll'], { grew, withinMs: QUIET_COMMIT_MS, stalledMs }));
  }

  /** Milliseconds of running without growth, if the job is stalled. */
  #noteStall(): number | null {
    const { jobId } = this;
    const stalledMs = this.#stage.stalledMs(this.#stallAfterMs);
    if (stalledMs !== null && !this.#isStalled)
      this.#context.log.warn({ jobId, quietMs: Math.round(stalledMs) }, 'job stalled');
    this.#isStalled = stalledMs !== null;
    return stalledMs;
  }

  async #syncResults(): Promise<void> {
    const { jobId } = this;
    const { poll, results, resultsIntervalMs, calls, remote, random, log } = this.#context;
    const { signal } = this.#stop;
    // A newer request may exclude results.
    if (poll.store.jobs.get(jobId)?.results !== true || this.#stage.current === 'deleted') return;
    const patient = new QueuedRemote(remote, calls, 'patient');
    const onListed = (names: readonly string[]) => this.#search.listed(names);
    const end = await results.sync(jobId, { remote: patient, final: false, onListed, signal });
    this.#refusedListings = 0;
    this.#runs.worked('results');
    if (end.changed + end.failed > 0) log.info({ jobId, ...end }, 'results synced');
    this.#runs.resultsSynced();
    if (this.isFollowed) this.#due.planAgain('results', withJitter(resultsIntervalMs, random()));
  }

  /** Searches for tasks; polls found ones at once. */
  async #searchTasks(): Promise<void> {
    const startedAt = this.#context.clock.monotonic();
    const { found, nextMs } = await this.#search.probe(this.#stop.signal);
    if (!this.isFollowed) return;
    this.#stage.polled(startedAt, true);
    if (found > 0) this.#due.plan('poll', 0);
    this.#search.planNext(nextMs);
  }

  async #pass(): Promise<void> {
    const { passes, intervals } = this.#context;
    const end = await passes.run(this.#polls, {
      signal: this.#stop.signal,
      isSettling: () => this.#isSettling,
      onThrough: async (appended) => {
        this.#grew(appended);
        for (const kind of DUE_RUNS) this.#runs.failures.cleared(this.#runs.scopeOf(kind));
        await this.#runs.succeeded(DUE_RUNS, { grew: appended > 0 });
      },
    });
    if (end === undefined) return;
    if (end.state === 'watched') this.#resume(end.job, intervals.minIntervalMs);
    else this.leave();
    if (end.again) this.#due.plan('pass', 0);
  }

  #resume(job: JobRow, delayMs: number): void {
    if (!this.isFollowed) {
      this.follow(job, delayMs);
      return;
    }
    this.#due.plan('poll', delayMs);
    this.#search.plan(LISTING_MS);
    if (job.results) this.#due.plan('results', Math.max(delayMs, this.#context.resultsIntervalMs));
  }

  #failed(kind: DueRun, error: JobtailError): void {
    const { poll, failures } = this.#context;
    this.#stage.endQuiet();
    const delayMs = this.#runs.failed(kind, error);
    try {
      const job = poll.store.jobs.get(this.jobId);
      if (this.#isGone(kind, error)) {
        this.#endDeleted();
        return;
      }
      // A pass that a command requested is not retried: the command has its answer. A pass that ends the job is.
      if (kind === 'pass' && job?.state !== 'ending') {
        this.#runs.giveUp('pass');
        if (job?.state === 'watched') this.#resume(job, delayMs);
        else {
          this.#runs.inBackground(this.#runs.succeeded(DUE_RUNS, { grew: false }));
          this.leave();
        }
        return;
      }
    } catch (thrown) {
      failures.failed(STATE, asJobtailError(thrown));
    }
    if (kind === 'pass' || this.isFollowed) this.#due.plan(kind, delayMs);
  }

  /** Ends a deleted job: no more requests, and its mirrors stay. */
  #endDeleted(): void {
    const before = this.#stage.report(DELETED);
    if (this.#stage.current === before) return;
    const { jobId } = this;
    this.#context.log.warn({ jobId }, 'job deleted, its files stay here');
    this.#due.cancel();
    this.#due.plan('pass', 0);
  }

  /** Whether an older release showed twice that the job was deleted: over, no live files, no listing. */
  #isGone(kind: DueRun, { policy, code }: JobtailError): boolean {
    const { store } = this.#context.poll;
    const reported = store.jobInformation.get(this.jobId)?.information;
    if (reported === undefined || (kind !== 'results' && kind !== 'pass')) return false;
    const isRefused = policy.isRefusal || code === 'http-status';
    if (!isRefused || this.#contents !== 'none' || phaseOf(reported.state) !== 'over') return false;
    this.#refusedListings += 1;
    if (this.#refusedListings < MIN_REFUSED_LISTINGS) return false;
    saveDeleted(reported, store, this.#context.clock);
    return true;
  }

  #grew(bytes: number): void {
    if (bytes === 0) return;
    this.#stage.grew();
    this.#context.onAppended?.(bytes);
  }
}
