/** The agent: the set of followed jobs, from the store, the configuration and commands. */
import { asJobtailError, type ErrorPolicy, type JobtailError } from '../../errors.ts';
import { BEHIND_EVERY_END, type JobId } from '../../job.ts';
import { phaseOf } from '../../job-information.ts';
import type { JobRow, WatchMineRule, WatchRequest } from '../../store/rows.ts';
import type { Commits } from '../../store/store.ts';
import type { RemovedFiles } from '../../system/remove-tree.ts';
import { queuedJobService } from '../calls.ts';
import { takeConfigured, takeRule } from '../configured-jobs.ts';
import { STATE } from '../failures.ts';
import { type KnownJobs, type Ownership, storeJobs } from '../ownership.ts';
import { verifyJob } from '../pass/verification.ts';
import type { JobService } from '../ports/server.ts';
import { Forgetting } from '../requests/forgetting.ts';
import { ServiceRequests } from '../requests/service-requests.ts';
import type { AgentContext } from './context.ts';
import { FollowedJob } from './followed-job.ts';
import { JobStates } from './job-states.ts';
import { jobsWithRequests } from './pass-run.ts';

interface AgentOptions {
  readonly context: AgentContext;
  /** Whether results are fetched of jobs that are followed by the rule for all jobs of the user. */
  readonly resultsOfMine: boolean;
  readonly commits: Commits;
  readonly ownership: Ownership;
  /** Removes secrets from a text. */
  readonly hide: (text: string) => string;
  /** All jobs, for requests to the job service; those of the store if undefined. */
  readonly knownJobs: KnownJobs | undefined;
}

/** Jobs that start together are spread over this time, in their order, with at most this time between two. */
const SPREAD_MS = 1_000;
const STEP_MS = 10;
const SIGN_IN = 'the sign-in';
/** For SOAP; REST always has a job service. */
const NO_SERVICE = 'set service.jobsUrl to the address of JobManagementWs';

export class Agent {
  readonly #options: AgentOptions;
  readonly #context: AgentContext;
  readonly #stop = new AbortController();
  readonly #jobs = new Map<JobId, FollowedJob>();
  readonly #jobStates: JobStates | undefined;
  readonly #serviceRequests: ServiceRequests;
  readonly #forgetting: Forgetting;
  /** The revision of the last read change of the store. */
  #revision = -1;
  #isUnread = false;
  #rule: string | undefined;
  #cancelRefresh: () => void = () => {};
  /** Before the store is read for the first time. */
  #begin: () => void = () => {};

  constructor(options: AgentOptions) {
    this.#options = options;
    const { context, hide } = options;
    this.#context = context;
    const { jobService, remote, results, calls, log } = context;
    this.#jobStates = jobService === null ? undefined : this.#newJobStates(jobService);
    this.#serviceRequests = new ServiceRequests(this.#context, {
      jobService: context.bare.jobService && queuedJobService(context.bare.jobService, calls, 'asked'),
      verify: (jobId, isComplete, signal) => verifyJob(jobId, { ...context, hide, isComplete, signal }),
    });
    const release = async (jobId: JobId) => {
      await this.release(jobId);
      await results.endTransfer(jobId, { remote, signal: this.#stop.signal });
    };
    this.#forgetting = new Forgetting({ context, release, signal: this.#stop.signal });
    calls.watchHanging(
      (kind, signal) => this.#callShortly(kind, signal),
      (shortCalls, othersWork) => log[othersWork ? 'debug' : 'warn']({ shortCalls, othersWork }, 'call hangs'),
    );
  }

  /** `configured`: null in a fleet, and for a command. `mine`: the rule for all jobs of the user. */
  start(configured: readonly WatchRequest[] | null, mine: WatchMineRule | null = null): void {
    this.#begin = () => {
      if (configured !== null) takeConfigured(configured, this.#context);
      if (this.#context.asked === undefined) takeRule(mine, this.#context);
      // A settled job may have been started again.
      if (this.#context.store.jobs.settled().size > 0 || this.#options.knownJobs !== undefined) this.#jobStates?.soon();
      this.#begin = () => {};
    };
    this.refresh();
  }

  /** Reads what other processes changed in the store; the timer finds changes without a notification. */
  refresh(): void {
    const { clock, limits, failures } = this.#context;
    try {
      this.#readStore();
      // A failed write is over when one succeeds.
      if (this.#isUnread) failures.cleared(STATE);
      this.#isUnread = false;
    } catch (thrown) {
      this.#isUnread = true;
      failures.failed(STATE, asJobtailError(thrown));
    }
    this.#cancelRefresh();
    if (this.#stop.signal.aborted) return;
    this.#cancelRefresh = clock.timer(limits.intervals.maxIntervalMs, () => this.refresh());
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
      if (!this.#context.calls.stalled) callback();
    });
  }

  /** Cancels calls in flight; resolves when everything appended is committed. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#cancelRefresh();
    this.#context.scheduler.stop();
    const jobs = [...this.#jobs.values()].map((job) => job.stop());
    await Promise.all([...jobs, this.#jobStates?.ended(), this.#serviceRequests.stop()]);
    await this.#forgetting.stop();
    this.#options.commits.flush();
  }

  take(jobIds: readonly JobId[]): void {
    const { store } = this.#context;
    this.#update(jobIds.flatMap((jobId) => store.jobs.get(jobId) ?? []));
    this.refresh();
  }

  /** Stops following a job that another agent owns, or may own soon; resolves when everything appended is committed. */
  async release(jobId: JobId): Promise<void> {
    const job = this.#jobs.get(jobId);
    this.#jobs.delete(jobId);
    await job?.stop();
    this.#options.commits.flush();
    this.#context.results.forgetJob(jobId);
  }

  /** Removes a job from the state, and on request its files. @throws JobtailError unless it is over */
  async forget(jobId: JobId, deleteFiles: boolean): Promise<RemovedFiles> {
    return await this.#forgetting.forget(jobId, deleteFiles);
  }

  get jobs(): number {
    return [...this.#jobs.values()].filter((job) => job.isFollowed).length;
  }

  #readStore(): void {
    const { store, clock, asked } = this.#context;
    const { ownership } = this.#options;
    this.#begin();
    store.requests.forgetUnrenewed(clock.now());
    const changed = store.jobs.changedSince(this.#revision);
    this.#update(asked === undefined ? changed : this.#askedOf(changed, asked));
    this.#revision = changed.at(-1)?.revision ?? this.#revision;
    // After the changes: leaving a job cancels its runs, but a requested pass runs anyway.
    for (const jobId of jobsWithRequests(this.#context)) if (ownership.owns(jobId)) this.#jobOf(jobId).due.plan('pass');
    this.#updateRule();
    this.#serviceRequests.serve();
    this.#forgetting.serve((jobId) => ownership.owns(jobId));
  }

  /** Of the changed jobs, and those that a command waits for since now, or no longer: all that this process works on. */
  #askedOf(changed: readonly JobRow[], asked: Set<JobId>): JobRow[] {
    const { jobs, requests } = this.#context.store;
    const before = new Set(asked);
    const passes = requests.open('pass');
    asked.clear();
    for (const { jobId } of requests.open('follow')) asked.add(jobId);
    for (const { jobId, kind } of passes) if (kind === 'unwatch') asked.add(jobId);
    // Another one is left after its pass.
    const isLeft = (jobId: JobId) => this.#jobs.has(jobId) && !passes.some((request) => request.jobId === jobId);
    const other = [...asked, ...before].filter((jobId) => !(asked.has(jobId) && before.has(jobId)));
    const all = [...changed, ...other.flatMap((jobId) => jobs.get(jobId) ?? [])];
    const rows = new Map(all.map((job) => [job.jobId, job]));
    return [...rows.values()].filter(({ jobId }) => asked.has(jobId) || isLeft(jobId));
  }

  /** Jobs that may still run come first: their first polls do not wait for those of jobs that are over. */
  #update(changed: readonly JobRow[]): void {
    const { store, catchUp } = this.#context;
    const { ownership } = this.#options;
    // A job is read for notifications before its first poll: a kill after that poll loses no event.
    if (changed.length > 0) void catchUp();
    const states = store.jobInformation.states(changed.length > 1 ? changed.map(({ jobId }) => jobId) : []);
    const over = new Set(changed.filter(({ jobId }) => phaseOf(states.get(jobId) ?? null) === 'over'));
    const stepMs = Math.min(STEP_MS, SPREAD_MS / changed.length);
    for (const [index, job] of [...changed.filter((job) => !over.has(job)), ...over].entries()) {
      const { jobId, state } = job;
      if (!ownership.owns(jobId)) continue;
      const isWorked = state === 'watched' || state === 'ending';
      (isWorked ? this.#jobOf(jobId) : this.#jobs.get(jobId))?.changed(job, index * stepMs);
      if (state === 'watched') this.#jobStates?.soon();
    }
  }

  /** Applies a new rule for jobs of the user; without a job service, none can apply. */
  #updateRule(): void {
    const { store, log } = this.#context;
    const rule = store.watchMine.inForce();
    const key = JSON.stringify(rule);
    if (key === this.#rule) return;
    this.#rule = key;
    if (rule === undefined) return;
    const fields = { code: 'config', hint: NO_SERVICE } as const;
    if (this.#jobStates !== undefined) this.#jobStates.soon();
    else log.error(fields, 'the jobs of the user cannot be followed: there is no job service');
  }

  #newJobStates(service: JobService): JobStates {
    const { store, clock, asked } = this.#context;
    const { knownJobs = storeJobs(store, clock), resultsOfMine } = this.#options;
    return new JobStates({
      context: this.#context,
      service,
      knownJobs,
      resultsOfMine,
      takesMine: asked === undefined,
      followed: () => [...this.#jobs.values()].filter((job) => job.isFollowed),
      onNewJobs: () => this.refresh(),
      signal: this.#stop.signal,
    });
  }

  /** Requests the end of one live file, or else the listing of a job. */
  async #callShortly(kind: 'parts' | 'listing', signal: AbortSignal): Promise<void> {
    const { bare, store } = this.#context;
    const { remote } = bare;
    const jobs = [...this.#jobs.values()].filter(({ isFollowed }) => isFollowed);
    const filesOf = ({ jobId }: FollowedJob) => store.liveFiles.ofJob(jobId);
    const job = jobs.find((one) => filesOf(one).length > 0) ?? jobs[0];
    if (job === undefined) return;
    const [one] = filesOf(job);
    if (kind === 'listing' || one === undefined) return void (await remote.listChangedFiles(job.jobId, signal));
    const { taskId, file } = one;
    const { parts } = await remote.readParts(job.jobId, [{ taskId, file, offset: BEHIND_EVERY_END }], signal);
    for (const { content } of parts) await content.release();
  }

  #jobOf(jobId: JobId): FollowedJob {
    const before = this.#jobs.get(jobId);
    if (before !== undefined) return before;
    const job: FollowedJob = new FollowedJob(jobId, this.#context, () => {
      if (this.#jobs.get(jobId) === job) this.#jobs.delete(jobId);
      this.#context.results.forgetJob(jobId);
    });
    this.#jobs.set(jobId, job);
    return job;
  }
}
