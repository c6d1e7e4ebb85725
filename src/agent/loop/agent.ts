/** The agent: which jobs there are, by the store, the configuration and what commands ask for. */
import { setMaxListeners } from 'node:events';
import { asJobtailError, type ErrorPolicy } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import type { Commits } from '../../store/commits.ts';
import type { WatchOrder } from '../../store/rows.ts';
import { QueuedRemote } from '../calls.ts';
import { RequestedPasses } from '../pass/job-end.ts';
import { takeConfigured } from './configured-jobs.ts';
import { Failures, STATE } from './failures.ts';
import { FollowedJob, type JobContext } from './followed-job.ts';
import { Scheduler } from './scheduler.ts';

export interface AgentOptions extends Omit<JobContext, 'scheduler' | 'passes' | 'failures' | 'onOver' | 'signal'> {
  readonly commits: Commits;
  readonly mirrorDirectory: string;
  /** Follow this job alone, whatever else is watched. */
  readonly only?: JobId | undefined;
}

/** Many jobs that start together are spread over this time. */
const SPREAD_MS = 1_000;
const FEW_JOBS = 16;

export class Agent {
  readonly #options: AgentOptions;
  readonly #context: JobContext;
  readonly #stop = new AbortController();
  readonly #jobs = new Map<JobId, FollowedJob>();
  /** How far the store was looked through. */
  #revision = -1;
  /** Takes back another look at a store that could not be read. */
  #cancelLook: () => void = () => {};

  constructor(options: AgentOptions) {
    this.#options = options;
    const { clock, log, calls, intervals, poll, results } = options;
    const { signal } = this.#stop;
    const remote = new QueuedRemote(options.remote, calls, 'live');
    const pauseMs = intervals.minIntervalMs;
    this.#context = {
      ...options,
      signal,
      scheduler: new Scheduler(clock),
      failures: new Failures(log),
      passes: new RequestedPasses({ ...options, store: poll.store, remote, pauseMs, signal }),
      onOver: (job) => {
        this.#jobs.delete(job.jobId);
        results.forgetJob(job.jobId);
      },
    };
    // Every call in flight listens to it.
    setMaxListeners(0, signal);
  }

  /** Begins to follow what the store and the configuration say. */
  start(configured: readonly WatchOrder[]): void {
    const { poll, clock, log } = this.#options;
    takeConfigured(configured, { store: poll.store, clock, log });
    this.refresh();
  }

  /** Looks at the store: jobs that are new, that are to end, and what commands asked for; again if it cannot be read. */
  refresh(): void {
    const { failures } = this.#context;
    try {
      this.#look();
      failures.over(STATE);
    } catch (thrown) {
      failures.failed(STATE, asJobtailError(thrown));
      const { clock, intervals } = this.#options;
      this.#cancelLook();
      this.#cancelLook = clock.timer(intervals.maxIntervalMs, () => this.refresh());
    }
  }

  /** Tries at once what failed with something that is mended by now. */
  tryAgain(isMended: (policy: ErrorPolicy) => boolean): void {
    for (const job of this.#jobs.values()) job.tryAgain(isMended);
  }

  /** Calls back at least every `everyMs` while the scheduler advances: it goes round, and calls get their turn. */
  onTurn(everyMs: number, callback: () => void): void {
    this.#context.scheduler.onTurn(everyMs, () => {
      if (!this.#options.calls.stalled) callback();
    });
  }

  /** Ends calls in flight, waits until everything that was appended is committed. */
  async stop(): Promise<void> {
    const { commits, poll } = this.#options;
    this.#stop.abort();
    this.#cancelLook();
    this.#context.scheduler.stop();
    await Promise.all([...this.#jobs.values()].map((job) => job.ended()));
    commits.flush();
    await poll.liveFiles.mirrors.close();
  }

  /** Jobs that are followed. */
  get jobs(): number {
    return [...this.#jobs.values()].filter((job) => job.isFollowed).length;
  }

  /** Only what changed since the last look is looked at. */
  #look(): void {
    const { poll, only, random } = this.#options;
    const isMine = (jobId: JobId) => only === undefined || jobId === only;
    for (const jobId of this.#context.passes.asked()) if (isMine(jobId)) this.#jobOf(jobId).startPass(true);
    let revision = this.#revision;
    for (const job of poll.store.jobs.changedSince(revision)) {
      const { jobId, state } = job;
      revision = Math.max(revision, job.revision);
      if (!isMine(jobId)) continue;
      const delayMs = this.#jobs.size >= FEW_JOBS ? random() * SPREAD_MS : 0;
      if (state === 'watched') this.#jobOf(jobId).follow(job, delayMs);
      else if (state === 'ending') this.#jobOf(jobId).startPass(false);
      else this.#jobs.get(jobId)?.leave();
    }
    this.#revision = revision;
  }

  #jobOf(jobId: JobId): FollowedJob {
    const job = this.#jobs.get(jobId) ?? new FollowedJob(jobId, this.#context);
    this.#jobs.set(jobId, job);
    return job;
  }
}
