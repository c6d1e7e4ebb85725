/**
 * The loop: what is due is visited, at its own time and one visit a job at a time; failures are waited out, said once,
 * and delay no other job. The work itself is elsewhere and just returns or throws.
 */
import { setMaxListeners } from 'node:events';
import { asJobtailError, type ErrorCode, type JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import type { Commits } from '../../store/commits.ts';
import type { JobRow, WatchOrder } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import { type Calls, QueuedRemote } from '../calls.ts';
import { Passes } from '../pass/requested-passes.ts';
import type { Polled } from '../poll/poll.ts';
import type { PollContext } from '../poll/poll-context.ts';
import type { Clock, Log, Remote } from '../ports.ts';
import type { Results } from '../results/results.ts';
import { takeOrders } from './configured-jobs.ts';
import { type Errand, Errands } from './errands.ts';
import { Troubles } from './failures.ts';
import { FollowedJob } from './followed-job.ts';
import { backOff, type IntervalLimits, restOf, withJitter } from './interval.ts';
import { JobMemory } from './job-memory.ts';
import { visitLive } from './live-visit.ts';
import { VisitEnds } from './visit-ends.ts';

export interface AgentOptions {
  readonly store: Store;
  readonly commits: Commits;
  readonly remote: Remote;
  readonly calls: Calls;
  readonly poll: PollContext;
  readonly results: Results;
  readonly mirrorDirectory: string;
  readonly intervals: IntervalLimits;
  readonly resultsIntervalMs: number;
  readonly clock: Clock;
  readonly log: Log;
  /** In [0, 1), for jitter. */
  readonly random: () => number;
  /** Follow this job alone, whatever else is watched. */
  readonly only?: JobId;
  /** Told how many bytes were appended to the live mirrors of a job. */
  readonly onAppended?: (bytes: number) => void;
}

/** Many jobs that start together are spread over this time. */
const SPREAD_MS = 1_000;
const FEW_JOBS = 16;
/** That a quiet job was polled is committed with something else, or after this time. */
const QUIET_COMMIT_MS = 1_000;

/** The scope of troubles with the store. */
const STATE = 'the state';

export class Agent {
  readonly #options: AgentOptions;
  readonly #errands: Errands;
  readonly #troubles: Troubles;
  readonly #visitEnds: VisitEnds;
  readonly #passes: Passes;
  readonly #memory: JobMemory;
  readonly #stop = new AbortController();
  readonly #followed = new Map<JobId, FollowedJob>();
  /** How far the store was looked through. */
  #revision = -1;
  /** Takes back another look at a store that could not be read. */
  #cancelLook: () => void = () => {};

  constructor(options: AgentOptions) {
    this.#options = options;
    const { clock, log, commits, intervals, random } = options;
    const { signal } = this.#stop;
    this.#errands = new Errands({ clock, run: (jobId, errand) => this.#run(jobId, errand) });
    this.#troubles = new Troubles(log);
    const commit = commits.commit.bind(commits);
    const delayMs = (times: number, { retryAfterMs }: JobtailError) =>
      withJitter(backOff(times, retryAfterMs, intervals), random());
    this.#visitEnds = new VisitEnds({ store: options.store, commit, now: () => clock.now(), delayMs });
    this.#passes = new Passes({
      ...options,
      remote: this.#remote('live'),
      visitEnds: this.#visitEnds,
      pauseMs: intervals.minIntervalMs,
      signal,
    });
    const { poll, results } = options;
    this.#memory = new JobMemory(poll, [this.#troubles, this.#visitEnds, results]);
    // Every call in flight listens to it.
    setMaxListeners(0, signal);
  }

  /** Begins to follow what the store and the configuration say. */
  start(orders: readonly WatchOrder[]): void {
    this.configure(orders);
    this.refresh();
  }

  /** Brings the jobs of the configuration into the store; a job that left it is brought to its end. */
  configure(orders: readonly WatchOrder[]): void {
    takeOrders(orders, this.#options);
  }

  /** Looks at the store: jobs that are new, that are to end, and what commands asked for; again if it cannot be read. */
  refresh(): void {
    try {
      this.#look();
      this.#troubles.over(STATE);
    } catch (thrown) {
      this.#troubles.failed(STATE, asJobtailError(thrown));
      const { clock, intervals } = this.#options;
      this.#cancelLook();
      this.#cancelLook = clock.timer(intervals.maxIntervalMs, () => this.refresh());
    }
  }

  /** Tries at once what failed with one of these codes: somebody has mended the cause. */
  tryAgain(codes: readonly ErrorCode[]): void {
    for (const [jobId, errand] of this.#visitEnds.failedWith(codes)) this.#errands.due(jobId, errand, 0);
  }

  /** Calls back at least every `everyMs` while the scheduler advances: it goes round, and calls get their turn. */
  onTurn(everyMs: number, callback: () => void): void {
    this.#errands.onTurn(everyMs, () => {
      if (!this.#options.calls.stalled) callback();
    });
  }

  /** Ends calls in flight, waits until everything that was appended is committed. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#cancelLook();
    await this.#errands.stop();
    this.#options.commits.flush();
    await this.#options.poll.liveFiles.mirrors.close();
  }

  /** Jobs that are followed. */
  get jobs(): number {
    return this.#followed.size;
  }

  /** Only what changed since the last look is looked at. */
  #look(): void {
    const { store, only } = this.#options;
    const isMine = (jobId: JobId) => only === undefined || jobId === only;
    const asked = this.#passes.asked();
    for (const jobId of asked) if (isMine(jobId)) this.#startPass(jobId, true);
    let revision = this.#revision;
    for (const job of store.jobs.changedSince(revision)) {
      revision = Math.max(revision, job.revision);
      if (!isMine(job.jobId)) continue;
      if (job.state === 'ending') this.#startPass(job.jobId, false);
      else if (job.state !== 'watched') this.#forget(job.jobId);
      else this.#follow(job);
    }
    this.#revision = revision;
  }

  #follow(job: JobRow): void {
    const { intervals, random, log, clock } = this.#options;
    const { jobId } = job;
    const before = this.#followed.get(jobId);
    const delayMs = this.#followed.size >= FEW_JOBS ? random() * SPREAD_MS : 0;
    this.#errands.due(jobId, 'live', delayMs);
    if (before !== undefined) {
      before.renew(job);
      if (job.results && !this.#errands.has(jobId, 'results')) this.#errands.due(jobId, 'results', delayMs);
      return;
    }
    this.#followed.set(jobId, new FollowedJob(job, clock, intervals));
    log.info({ jobId, source: job.source }, `following job ${jobId}`);
    if (!job.results) return;
    // A first poll tells which of the listed files are live files.
    const afterPollMs = this.#options.store.liveFiles.ofJob(jobId).length > 0 ? intervals.minIntervalMs : 0;
    this.#errands.due(jobId, 'results', afterPollMs);
  }

  #forget(jobId: JobId): void {
    this.#followed.delete(jobId);
    this.#errands.cancel(jobId);
    void this.#memory.forget(jobId);
  }

  /** One pass that runs, or that failed and waits for its time, is enough, unless a command asked since it began. */
  #startPass(jobId: JobId, asked: boolean): void {
    if (asked || !this.#errands.has(jobId, 'pass')) this.#errands.due(jobId, 'pass', 0);
  }

  /** One errand; never rejects. */
  async #run(jobId: JobId, errand: Errand): Promise<void> {
    try {
      if (errand === 'live') await this.#poll(jobId);
      else if (errand === 'results') await this.#syncResults(jobId);
      else await this.#pass(jobId);
      this.#troubles.worked(`job ${jobId}`);
    } catch (thrown) {
      const error = asJobtailError(thrown);
      if (error.code !== 'aborted' || !this.#stop.signal.aborted) this.#failed(jobId, errand, error);
    }
    if (this.#followed.has(jobId)) return;
    // What this visit remembered, though the job was given up meanwhile.
    if (this.#errands.waits(jobId)) await this.#memory.closeMirrors(jobId);
    else await this.#memory.forget(jobId);
  }

  async #poll(jobId: JobId): Promise<void> {
    const { clock, random } = this.#options;
    const followed = this.#followed.get(jobId);
    if (followed === undefined) return;
    const patient = followed.slow || this.#visitEnds.isFailing(jobId, 'live');
    const visit = { ...this.#options, patient, signal: this.#stop.signal };
    const { polled, startedAt, tookMs } = await visitLive(jobId, visit);
    await this.#notePoll(jobId, polled);

    const news = polled.appended > 0 || [...polled.ends.values()].includes('witness');
    const intervalMs = withJitter(followed.polled(news, tookMs), random());
    if (!this.#followed.has(jobId)) return;
    if (followed.isSettled) this.#errands.due(jobId, 'pass', 0);
    else this.#errands.dueAgain(jobId, 'live', restOf(intervalMs, clock.monotonic() - startedAt));
  }

  /** Says and keeps what a poll brought; waits for the commit only if there is something in it to be waited for. */
  async #notePoll(jobId: JobId, { appended, refused, errors, ends }: Polled): Promise<void> {
    const { log } = this.#options;
    for (const [file, error] of errors) this.#troubles.failed(`job ${jobId} ${file}`, error);
    for (const file of ends.keys()) this.#troubles.worked(`job ${jobId} ${file}`);
    const grew = appended > 0;
    if (grew) {
      log.debug({ jobId, bytes: appended }, 'grown');
      this.#grew(jobId, appended);
    }
    if (refused > 0) log.warn({ jobId, refused }, `job ${jobId}: the service sent entries that were not asked for`);
    const failed = this.#visitEnds.isFailing(jobId, 'live');
    if (grew || refused > 0 || failed) await this.#visitEnds.went(jobId, ['live'], { grew, refused });
    else this.#noted(this.#visitEnds.went(jobId, ['live'], { grew, withinMs: QUIET_COMMIT_MS }));
  }

  async #syncResults(jobId: JobId): Promise<void> {
    const { store, results, resultsIntervalMs, random, log } = this.#options;
    // A newer order may want no results.
    if (store.jobs.get(jobId)?.results !== true) return;
    const end = await results.sync(jobId, { remote: this.#remote('patient'), final: false, signal: this.#stop.signal });
    if (end.changed + end.failed > 0)
      log.info({ jobId, ...end }, `job ${jobId}: ${end.changed} results new or changed, ${end.failed} failed`);
    if (this.#visitEnds.isFailing(jobId, 'results')) await this.#visitEnds.went(jobId, ['results'], { grew: false });
    if (this.#followed.has(jobId)) this.#errands.dueAgain(jobId, 'results', withJitter(resultsIntervalMs, random()));
  }

  async #pass(jobId: JobId): Promise<void> {
    const settling = this.#followed.get(jobId)?.isSettled === true;
    const onAppended = (bytes: number) => this.#grew(jobId, bytes);
    const end = await this.#passes.run(jobId, { settling, onAppended });
    if (end === undefined) return;
    if (end.state === 'watched') this.#resume(end.job, this.#options.intervals.minIntervalMs);
    else this.#forget(jobId);
    if (end.again) this.#errands.due(jobId, 'pass', 0);
  }

  /** After a pass, the job is polled again as before. */
  #resume(job: JobRow, delayMs: number): void {
    if (!this.#followed.has(job.jobId)) {
      this.#follow(job);
      return;
    }
    this.#errands.due(job.jobId, 'live', delayMs);
    if (job.results) this.#errands.due(job.jobId, 'results', Math.max(delayMs, this.#options.resultsIntervalMs));
  }

  #failed(jobId: JobId, errand: Errand, error: JobtailError): void {
    const { store, intervals, log } = this.#options;
    this.#followed.get(jobId)?.endQuiet();
    if (error.code === 'internal') log.debug({ jobId, stack: error.stack }, 'where it happened');
    const { delayMs, retryAt, noted } = this.#visitEnds.failed(jobId, errand, error);
    const isWish = (error.retryAfterMs ?? 0) > intervals.maxIntervalMs;
    this.#troubles.failed(`job ${jobId}`, error, isWish ? retryAt : undefined);
    this.#noted(noted);
    try {
      const job = store.jobs.get(jobId);
      // A pass that a command asked for is not tried again: the command was told. One that ends the job is.
      if (errand === 'pass' && job?.state === 'watched') {
        this.#visitEnds.giveUp(jobId, 'pass');
        this.#resume(job, delayMs);
        return;
      }
    } catch (thrown) {
      this.#troubles.failed(STATE, asJobtailError(thrown));
    }
    if (errand === 'pass' || this.#followed.has(jobId)) this.#errands.due(jobId, errand, delayMs);
  }

  /** Nobody waits for this commit; if it fails, that is said. */
  #noted(commit: Promise<void>): void {
    commit.then(
      () => this.#troubles.over(STATE),
      (thrown: unknown) => this.#troubles.failed(STATE, asJobtailError(thrown)),
    );
  }

  #grew(jobId: JobId, bytes: number): void {
    this.#followed.get(jobId)?.endQuiet();
    this.#options.onAppended?.(bytes);
  }

  #remote(lane: 'live' | 'patient'): Remote {
    return new QueuedRemote(this.#options.remote, this.#options.calls, lane);
  }
}
