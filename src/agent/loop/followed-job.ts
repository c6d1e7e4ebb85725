/**
 * A job that is followed, or has its last pass: what is due of it, how often it is polled, what fails of it, and what
 * its polls remember. All of that ends with it.
 */

import { BackOff } from '../../back-off.ts';
import { asJobtailError, type ErrorPolicy, type JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import type { JobRow } from '../../store/rows.ts';
import type { Clock } from '../../system/clock.ts';
import { sourceStack } from '../../system/source-stack.ts';
import { CallSlot, type Calls, QueuedRemote } from '../calls.ts';
import { wantsAnotherLook } from '../live/steps.ts';
import type { RequestedPasses } from '../pass/job-end.ts';
import { JobPolls, type PollContext, type Polled, troubleFrom } from '../poll/poll.ts';
import type { Log, Remote } from '../ports.ts';
import type { Results } from '../results/results.ts';
import { DUE_TASKS, type DueTask, DueTasks } from './due-tasks.ts';
import { Failures, STATE } from './failure-log.ts';
import { type IntervalLimits, Pace, restOf, withJitter } from './pace.ts';
import type { Scheduler } from './scheduler.ts';

/** What all jobs share. */
export interface JobContext {
  readonly scheduler: Scheduler;
  readonly calls: Calls;
  readonly remote: Remote;
  readonly poll: PollContext;
  readonly results: Results;
  readonly passes: RequestedPasses;
  /** Of the agent as a whole. */
  readonly failures: Failures;
  readonly intervals: IntervalLimits;
  readonly resultsIntervalMs: number;
  readonly clock: Clock;
  readonly log: Log;
  /** In [0, 1), for jitter. */
  readonly random: () => number;
  /** Told how many bytes were appended to the live mirrors of a job. */
  readonly onAppended?: ((bytes: number) => void) | undefined;
  /** It is not followed, and nothing is left to be done for it. */
  readonly onOver: (job: FollowedJob) => void;
  /** The agent stops. */
  readonly signal: AbortSignal;
}

/** That a quiet job was polled is committed with something else, or after this time. */
const QUIET_COMMIT_MS = 1_000;

/** A task that failed the last time. */
interface Failing {
  /** How often in a row. */
  readonly times: number;
  readonly retryAt: number;
  readonly error: JobtailError;
  readonly backOff: BackOff;
}

/** What a visit that went through brought. */
interface VisitEnd {
  readonly grew: boolean;
  /** Entries of answers that were refused. */
  readonly refused?: number;
  /** How long its end may stay unsaid, in milliseconds; the usual time of a commit if left out. */
  readonly withinMs?: number;
}

export class FollowedJob {
  readonly jobId: JobId;
  readonly #context: JobContext;
  readonly #scope: string;
  readonly #tasks: DueTasks;
  readonly #polls: JobPolls;
  readonly #failures: Failures;
  readonly #failing = new Map<DueTask, Failing>();
  /** Undefined while it is not followed. */
  #pace: Pace | undefined;

  constructor(jobId: JobId, context: JobContext) {
    const { clock, scheduler, log, poll, failures } = context;
    this.jobId = jobId;
    this.#context = context;
    this.#scope = `job ${jobId}`;
    this.#tasks = new DueTasks({ clock, scheduler, run: (task) => this.#run(task), onIdle: () => this.#idle() });
    this.#polls = new JobPolls(jobId, poll);
    this.#failures = new Failures(log, failures);
  }

  get isFollowed(): boolean {
    return this.#pace !== undefined;
  }

  /** Polls it from now on, or goes on by its newer order. */
  follow(job: JobRow, delayMs: number): void {
    const { intervals, clock, log, poll } = this.#context;
    const { jobId, source } = job;
    this.#tasks.due('poll', delayMs);
    if (this.#pace !== undefined) {
      this.#pace.renew(job);
      if (job.results && !this.#tasks.has('results')) this.#tasks.due('results', delayMs);
      return;
    }
    this.#pace = new Pace(job, clock, intervals);
    log.info({ jobId, source }, `following job ${jobId}`);
    if (!job.results) return;
    // A first poll tells which of the listed files are live files.
    this.#tasks.due('results', poll.store.liveFiles.ofJob(jobId).length > 0 ? intervals.minIntervalMs : 0);
  }

  /** One pass that runs, or that failed and waits for its time, is enough, unless a command asked since it began. */
  startPass(isAsked: boolean): void {
    if (isAsked || !this.#tasks.has('pass')) this.#tasks.due('pass', 0);
  }

  /** It is given up: what runs comes to its end, and nothing more is begun. */
  leave(): void {
    this.#pace = undefined;
    this.#tasks.cancel();
    if (!this.#tasks.areIdle) return;
    void this.#polls.closeMirrors();
    this.#idle();
  }

  /** Tries at once what failed with something that is mended by now. */
  tryAgain(isMended: (policy: ErrorPolicy) => boolean): void {
    for (const [task, { error }] of this.#failing) if (isMended(error.policy)) this.#tasks.due(task, 0);
  }

  /** Resolves when what runs now has ended. */
  ended(): Promise<void> {
    return this.#tasks.ended();
  }

  #idle(): void {
    if (!this.isFollowed) this.#context.onOver(this);
  }

  /** Does what is due; never rejects. */
  async #run(task: DueTask): Promise<void> {
    try {
      if (task === 'poll') await this.#poll();
      else if (task === 'results') await this.#syncResults();
      else await this.#pass();
      this.#failures.worked(this.#scope);
    } catch (thrown) {
      const error = asJobtailError(thrown);
      if (error.code !== 'aborted' || !this.#context.signal.aborted) this.#failed(task, error);
    }
    // The job may have been given up meanwhile.
    if (!this.isFollowed) await this.#polls.closeMirrors();
  }

  async #poll(): Promise<void> {
    if (this.#pace === undefined) return;
    const { calls, remote, clock, random, signal } = this.#context;
    // One that answered slowly, or not at all, must not delay the others.
    const isPatient = this.#pace.isSlow || this.#failing.has('poll');
    const slot = new CallSlot(calls, isPatient ? 'patient' : 'live', signal);
    const slotted = new QueuedRemote(remote, slot, isPatient ? 'patient' : 'begun');
    let startedAt = clock.monotonic();
    const begin = async () => {
      await slot.take();
      startedAt = clock.monotonic();
    };
    const options = { remote: slotted, begin, final: false, signal };
    const polled = await this.#polls.poll(options).finally(() => slot.end());
    const tookMs = clock.monotonic() - startedAt;
    await this.#notePoll(polled);

    if (!this.isFollowed) return;
    const hasNews = polled.appended > 0 || [...polled.ends.values()].some(wantsAnotherLook);
    const intervalMs = withJitter(this.#pace.polled(hasNews, tookMs), random());
    if (this.#pace.isSettled) this.#tasks.due('pass', 0);
    else this.#tasks.dueAgain('poll', restOf(intervalMs, clock.monotonic() - startedAt));
  }

  /** Says and keeps what a poll brought; waits for the commit only if there is something in it to be waited for. */
  async #notePoll({ appended, refused, errors, ends }: Polled): Promise<void> {
    const { jobId } = this;
    const { log } = this.#context;
    for (const [file, error] of errors) this.#failures.failed(`${this.#scope} ${file}`, error);
    for (const file of ends.keys()) this.#failures.worked(`${this.#scope} ${file}`);
    const grew = appended > 0;
    if (grew) log.debug({ jobId, bytes: appended }, 'grown');
    this.#grew(appended);
    if (refused > 0) log.warn({ jobId, refused }, `job ${jobId}: the service sent entries that were not asked for`);
    const failed = this.#failing.has('poll');
    if (grew || refused > 0 || failed) await this.#went(['poll'], { grew, refused });
    else this.#unawaited(this.#went(['poll'], { grew, withinMs: QUIET_COMMIT_MS }));
  }

  async #syncResults(): Promise<void> {
    const { jobId } = this;
    const { poll, results, resultsIntervalMs, calls, remote, random, log, signal } = this.#context;
    // A newer order may want no results.
    if (poll.store.jobs.get(jobId)?.results !== true) return;
    const patient = new QueuedRemote(remote, calls, 'patient');
    const end = await results.sync(jobId, { remote: patient, final: false, signal });
    if (end.changed + end.failed > 0)
      log.info({ jobId, ...end }, `job ${jobId}: ${end.changed} results new or changed, ${end.failed} failed`);
    if (this.#failing.has('results')) await this.#went(['results'], { grew: false });
    if (this.isFollowed) this.#tasks.dueAgain('results', withJitter(resultsIntervalMs, random()));
  }

  async #pass(): Promise<void> {
    const { passes, intervals } = this.#context;
    const end = await passes.run(this.#polls, {
      isSettling: this.#pace?.isSettled === true,
      onThrough: async (appended) => {
        this.#grew(appended);
        await this.#went(DUE_TASKS, { grew: appended > 0 });
      },
    });
    if (end === undefined) return;
    if (end.state === 'watched') this.#resume(end.job, intervals.minIntervalMs);
    else this.leave();
    if (end.again) this.#tasks.due('pass', 0);
  }

  /** After a pass, it is polled again as before. */
  #resume(job: JobRow, delayMs: number): void {
    if (!this.isFollowed) {
      this.follow(job, delayMs);
      return;
    }
    this.#tasks.due('poll', delayMs);
    if (job.results) this.#tasks.due('results', Math.max(delayMs, this.#context.resultsIntervalMs));
  }

  #failed(task: DueTask, error: JobtailError): void {
    const { jobId } = this;
    const { poll, intervals, clock, random, log, failures } = this.#context;
    const { minIntervalMs, maxIntervalMs: maxMs } = intervals;
    const { retryAfterMs = 0 } = error;
    this.#pace?.endQuiet();
    if (error.code === 'internal') log.debug({ jobId, stack: sourceStack(error) }, 'where it happened');

    const { backOff, times } = this.#failing.get(task) ?? {
      backOff: new BackOff({ firstMs: 2 * minIntervalMs, maxMs, nowMs: () => clock.monotonic(), random }),
      times: 0,
    };
    backOff.lengthen();
    backOff.pause(retryAfterMs);
    const delayMs = backOff.remainingMs;
    const retryAt = clock.now() + Math.round(delayMs);
    this.#failing.set(task, { backOff, times: times + 1, retryAt, error });
    this.#failures.failed(this.#scope, error, retryAfterMs > maxMs ? retryAt : undefined);
    this.#unawaited(this.#note({ grew: false }));
    try {
      const job = poll.store.jobs.get(jobId);
      // A pass that a command asked for is not tried again: the command was told. One that ends the job is.
      if (task === 'pass' && job?.state === 'watched') {
        this.#failing.delete('pass');
        this.#resume(job, delayMs);
        return;
      }
    } catch (thrown) {
      failures.failed(STATE, asJobtailError(thrown));
    }
    if (task === 'pass' || this.isFollowed) this.#tasks.due(task, delayMs);
  }

  /** Tasks went through. Resolves when that is committed. */
  #went(tasks: readonly DueTask[], end: VisitEnd): Promise<void> {
    for (const task of tasks) this.#failing.delete(task);
    return this.#note(end);
  }

  /** Keeps in the store how a visit ended, and the first of the failures there are. */
  #note({ grew, refused = 0, withinMs }: VisitEnd): Promise<void> {
    const { jobId } = this;
    const { clock, poll } = this.#context;
    const { store, commit } = poll;
    const polledAt = clock.now();
    const [worst] = DUE_TASKS.flatMap((task) => this.#failing.get(task) ?? []);
    return commit(() => {
      const before = worst === undefined ? null : (store.jobs.get(jobId)?.error ?? null);
      const trouble = troubleFrom(worst?.error, before, polledAt);
      const error = worst === undefined || trouble === null ? null : { ...trouble, retryAt: worst.retryAt };
      const grownAt = grew ? polledAt : null;
      store.jobs.endVisit(jobId, { polledAt, grownAt, refused, failures: worst?.times ?? 0, error });
    }, withinMs);
  }

  /** Nobody waits for this commit; if it fails, that is said. */
  #unawaited(commit: Promise<void>): void {
    const { failures } = this.#context;
    commit.then(
      () => failures.over(STATE),
      (thrown: unknown) => failures.failed(STATE, asJobtailError(thrown)),
    );
  }

  #grew(bytes: number): void {
    if (bytes === 0) return;
    this.#pace?.endQuiet();
    this.#context.onAppended?.(bytes);
  }
}
