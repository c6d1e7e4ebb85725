/** The agent: the set of followed jobs, from the store, the configuration and commands. */
import { asJobtailError, type ErrorPolicy, type JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import type { JobRow, WatchMineRule, WatchRequest } from '../../store/rows.ts';
import type { Commits } from '../../store/store.ts';
import { QueuedRemote, queuedJobService } from '../calls.ts';
import { ALONE, type JobRegister, type Ownership, StoreRegister } from '../ownership.ts';
import { RequestedPasses } from '../pass/job-end.ts';
import { takeConfigured, takeRule } from './configured-jobs.ts';
import { FollowedJob, type JobContext } from './followed-job.ts';
import { Failures, STATE } from './job-runs.ts';
import { JobStates } from './job-states.ts';
import { Scheduler } from './scheduler.ts';

export interface AgentOptions
  extends Omit<JobContext, 'scheduler' | 'passes' | 'failures' | 'search' | 'onFollowed' | 'onOver'> {
  readonly search: Omit<JobContext['search'], 'hasJobService'>;
  readonly onJobStates?: ((outcome: 'ok' | 'failed') => void) | undefined;
  /** Whether results are fetched of jobs that are followed by the rule for all jobs of the user. */
  readonly resultsOfMine: boolean;
  readonly commits: Commits;
  readonly mirrorDirectory: string;
  /** Follow these jobs only. */
  readonly only?: ReadonlySet<JobId> | undefined;
  readonly ownership?: Ownership | undefined;
  /** All jobs, for requests to the job service; those of the store if omitted. */
  readonly register?: JobRegister | undefined;
}

/** Many jobs that start together are spread over this time. */
const SPREAD_MS = 1_000;
const FEW_JOBS = 16;
const SIGN_IN = 'the sign-in';
/** For SOAP; REST always has a job service. */
const NO_SERVICE = 'set service.jobsUrl to the address of JobManagementWs';

export class Agent {
  readonly #options: AgentOptions;
  readonly #context: JobContext;
  readonly #stop = new AbortController();
  readonly #jobs = new Map<JobId, FollowedJob>();
  readonly #jobStates: JobStates | undefined;
  /** The revision of the last read change of the store. */
  #revision = -1;
  #rule: string | undefined;
  #cancelRefresh: () => void = () => {};

  constructor(options: AgentOptions) {
    this.#options = options;
    const { clock, log, calls, intervals, poll, results } = options;
    const remote = new QueuedRemote(options.remote, calls, 'live');
    const pauseMs = intervals.minIntervalMs;
    const scheduler = new Scheduler(clock);
    const failures = new Failures(log);
    const jobService = options.jobService === null ? null : queuedJobService(options.jobService, calls);
    this.#jobStates = this.#newJobStates(scheduler, failures);
    this.#context = {
      ...options,
      jobService,
      scheduler,
      failures,
      search: { ...options.search, hasJobService: options.jobService !== null },
      onFollowed: () => this.#jobStates?.soon(),
      passes: new RequestedPasses({ ...options, jobService, store: poll.store, remote, pauseMs }),
      onOver: (job) => {
        if (this.#jobs.get(job.jobId) === job) this.#jobs.delete(job.jobId);
        results.forgetJob(job.jobId);
      },
    };
  }

  /**
   * Starts to follow the jobs of the store, and of the configuration unless `configured` is null. `mine`: the rule for
   * all jobs of the user.
   */
  start(configured: readonly WatchRequest[] | null, mine: WatchMineRule | null = null): void {
    const { poll, clock, log, only } = this.#options;
    const { store } = poll;
    if (configured !== null) takeConfigured(configured, { store, clock, log });
    if (only === undefined) takeRule(mine, { store, clock, log });
    // A settled job may have been started again.
    if (store.jobs.settled().size > 0 || this.#options.register !== undefined) this.#jobStates?.soon();
    this.refresh();
  }

  /**
   * Reads the store: new jobs, jobs that must end, requests of commands. Another process that changes the store sends a
   * notification; the timer finds changes without one.
   */
  refresh(): void {
    const { clock, intervals } = this.#options;
    const { failures } = this.#context;
    try {
      this.#readStore();
      failures.cleared(STATE);
    } catch (thrown) {
      failures.failed(STATE, asJobtailError(thrown));
    }
    this.#cancelRefresh();
    if (!this.#stop.signal.aborted) this.#cancelRefresh = clock.timer(intervals.maxIntervalMs, () => this.refresh());
  }

  /** Logs a failure of the first sign-in, and requests the jobs until the service answers, also if none is followed. */
  serviceFailed(error: JobtailError): void {
    // The request for the jobs logs any other failure.
    if (error.policy.isOfService || this.#jobStates === undefined) this.#context.failures.failed(SIGN_IN, error);
    this.#jobStates?.soon();
  }

  /** Retries at once what failed with an error whose cause is gone. */
  tryAgain(isMended: (policy: ErrorPolicy) => boolean): void {
    for (const job of this.#jobs.values()) job.tryAgain(isMended);
    this.#jobStates?.tryAgain(isMended);
  }

  /** Calls back at least every `everyMs` while the scheduler and the queue of calls advance. */
  onTurn(everyMs: number, callback: () => void): void {
    this.#context.scheduler.onTurn(everyMs, () => {
      if (!this.#options.calls.stalled) callback();
    });
  }

  /** Cancels calls in flight; resolves when everything appended is committed. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#cancelRefresh();
    this.#context.scheduler.stop();
    await Promise.all([...[...this.#jobs.values()].map((job) => job.stop()), this.#jobStates?.ended()]);
    this.#options.commits.flush();
  }

  take(jobIds: readonly JobId[]): void {
    for (const jobId of jobIds) {
      const job = this.#options.poll.store.jobs.get(jobId);
      if (job !== undefined) this.#update(job);
    }
    this.refresh();
  }

  /** Stops following a job that another agent owns, or may own soon; resolves when everything appended is committed. */
  async release(jobId: JobId): Promise<void> {
    const { commits, results } = this.#options;
    const job = this.#jobs.get(jobId);
    this.#jobs.delete(jobId);
    await job?.stop();
    commits.flush();
    results.forgetJob(jobId);
  }

  get jobs(): number {
    return [...this.#jobs.values()].filter((job) => job.isFollowed).length;
  }

  #readStore(): void {
    const { store } = this.#options.poll;
    let revision = this.#revision;
    for (const job of store.jobs.changedSince(revision)) {
      revision = Math.max(revision, job.revision);
      this.#update(job);
    }
    this.#revision = revision;
    // After the changes: leaving a job cancels its runs, but a requested pass runs anyway.
    for (const jobId of this.#context.passes.asked()) if (this.#isMine(jobId)) this.#jobOf(jobId).startPass(true);
    this.#updateRule();
  }

  #isMine(jobId: JobId): boolean {
    const { only, ownership = ALONE } = this.#options;
    return (only === undefined || only.has(jobId)) && ownership.owns(jobId);
  }

  #update(job: JobRow): void {
    const { jobId, state } = job;
    if (!this.#isMine(jobId)) return;
    const delayMs = this.#jobs.size >= FEW_JOBS ? this.#options.random() * SPREAD_MS : 0;
    if (state === 'watched') this.#jobOf(jobId).follow(job, delayMs);
    else if (state === 'ending') this.#jobOf(jobId).startPass(false);
    else this.#jobs.get(jobId)?.leave();
  }

  /** Applies a new rule for jobs of the user; without a job service, none can apply. */
  #updateRule(): void {
    const { poll, log } = this.#options;
    const rule = poll.store.watchMine.inForce();
    const key = JSON.stringify(rule);
    if (key === this.#rule) return;
    this.#rule = key;
    if (rule === undefined) return;
    if (this.#jobStates !== undefined) this.#jobStates.soon();
    else
      log.error(
        { code: 'config', hint: NO_SERVICE },
        'the jobs of the user cannot be followed: there is no job service',
      );
  }

  #newJobStates(scheduler: Scheduler, failures: Failures): JobStates | undefined {
    const { jobService, calls, poll, intervals, search, resultsOfMine, onJobStates } = this.#options;
    if (jobService === null) return undefined;
    return new JobStates({
      ...this.#options,
      register: this.#options.register ?? new StoreRegister(poll.store, this.#options.clock),
      ...{ scheduler, failures, store: poll.store, commit: poll.commit, onFound: search.onFound },
      only: this.#options.only,
      minIntervalMs: intervals.minIntervalMs,
      results: resultsOfMine,
      service: queuedJobService(jobService, calls),
      followed: () => [...this.#jobs.values()].filter((job) => job.isFollowed),
      onNewJobs: () => this.refresh(),
      onRead: onJobStates,
      signal: this.#stop.signal,
    });
  }

  #jobOf(jobId: JobId): FollowedJob {
    const job = this.#jobs.get(jobId) ?? new FollowedJob(jobId, this.#context);
    this.#jobs.set(jobId, job);
    return job;
  }
}
