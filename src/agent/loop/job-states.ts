/** Requests the reports of the middleware about all jobs (docs/dev/soap.md 10): states, tasks, new jobs of the user. */
import { BackOff, type BackOffOptions } from '../../back-off.ts';
import { eachAlone } from '../../each-alone.ts';
import { asJobtailError, ERROR_POLICIES, type ErrorPolicy, type JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import { isOtherRun, type JobInformation, jobTimeOf } from '../../job-information.ts';
import { inSlices } from '../../slices.ts';
import type { StoredError } from '../../store/rows.ts';
import { STATE, storedErrorFrom } from '../failures.ts';
import type { KnownJobs } from '../ownership.ts';
import type { JobService } from '../ports/server.ts';
import { withJitter } from '../schedule/pace.ts';
import type { Scheduled } from '../schedule/scheduler.ts';
import { saveReported } from '../tasks/task-search.ts';
import { byNeed, type SeenJobs, seenIn, takeMine } from '../watch-mine.ts';
import type { AgentContext } from './context.ts';
import type { FollowedJob } from './followed-job.ts';
import { reportEvent, rowOf } from './job-life.ts';

interface JobStatesOptions {
  readonly context: AgentContext;
  /** Its calls wait in the queue. */
  readonly service: JobService;
  readonly knownJobs: KnownJobs;
  /** Whether results are fetched of jobs that are followed by the rule for all jobs of the user. */
  readonly resultsOfMine: boolean;
  /** Whether it takes jobs of the user, and follows settled ones again: else it lists them only if that is cheaper. */
  readonly takesMine: boolean;
  readonly followed: () => readonly FollowedJob[];
  readonly onNewJobs: () => void;
  readonly signal: AbortSignal;
}

const SCOPE = 'the job service';
/** The middleware polls its cluster at this interval (docs/dev/servers.md 10.3). */
export const INTERVAL_MS = 30_000;
/** While no job is active, and none is expected. */
export const IDLE_INTERVAL_MS = 120_000;
const MAX_PAUSE_MS = 5 * 60_000;
/** Maximum jobs in one round that no list names and that are requested one by one. */
const MAX_REQUESTED = 8;
/** After so many failed requests in a row, tasks are searched by probes. */
const LASTING_FAILURES = 2;
/** After so many of one job in a row, about 12 minutes, while the service responds to others: as a refusal. */
const REFUSED_FAILURES = 6;
/** Interval for storing unchanged reports again. */
const STORED_AGAIN_MS = 5 * 60_000;

export class JobStates implements Scheduled {
  readonly #options: JobStatesOptions;
  readonly #context: AgentContext;
  readonly #backOff: BackOff;
  readonly #pauses: BackOffOptions;
  #dueAt = Number.POSITIVE_INFINITY;
  #listedAt = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | undefined;
  #failing: StoredError | null = null;
  #storedAgainAt = Number.NEGATIVE_INFINITY;
  #listed = 0;
  /** In the last list. */
  #seen: SeenJobs | undefined;
  #waiting = 0;
  /** Reports of single jobs, so far. */
  #requests = 0;
  /** To be stored at the end of the round. */
  readonly #reports: JobInformation[] = [];

  constructor(options: JobStatesOptions) {
    const { clock, random } = options.context;
    this.#options = options;
    this.#context = options.context;
    this.#pauses = { firstMs: INTERVAL_MS, maxMs: MAX_PAUSE_MS, nowMs: clock.monotonic, random };
    this.#backOff = new BackOff(this.#pauses);
  }

  get nextDue(): number {
    if (this.#running !== undefined) return Number.POSITIVE_INFINITY;
    // However many jobs are added, from one list to the next request.
    return Math.max(this.#dueAt, this.#listedAt + this.#context.limits.intervals.minIntervalMs);
  }

  soon(): void {
    if (this.#backOff.remainingMs <= 0) this.#due(0);
  }

  tryAgain(isMended: (policy: ErrorPolicy) => boolean): void {
    if (this.#failing !== null && isMended(ERROR_POLICIES[this.#failing.code])) this.#due(0);
  }

  startDue(): void {
    this.#dueAt = Number.POSITIVE_INFINITY;
    const { failures, scheduler } = this.#context;
    // Only the state fails here: `#run` handles what the service does.
    const unread = (thrown: unknown) => {
      failures.failed(STATE, asJobtailError(thrown));
      this.#due(INTERVAL_MS);
    };
    this.#running = this.#run()
      .catch(unread)
      .finally(() => {
        this.#running = undefined;
        scheduler.arrange(this);
      });
  }

  async ended(): Promise<void> {
    await this.#running;
  }

  #due(delayMs: number): void {
    this.#dueAt = Math.min(this.#dueAt, this.#context.clock.monotonic() + delayMs);
    this.#context.scheduler.arrange(this);
  }

  async #run(): Promise<void> {
    const { signal } = this.#options;
    const { random, failures, events } = this.#context;
    const { ofService } = failures;
    try {
      await this.#refresh();
      this.#backOff.reset();
      this.#failing = null;
      failures.cleared(SCOPE);
      failures.worked(ofService);
      events.onJobStates('ok');
    } catch (thrown) {
      if (signal.aborted) return;
      this.#failed(asJobtailError(thrown));
      events.onJobStates('failed');
    }
    const delayMs = this.#failing === null ? withJitter(this.#intervalMs, random()) : this.#backOff.remainingMs;
    this.#due(delayMs);
    await this.#note(delayMs);
  }

  async #refresh(): Promise<void> {
    const { service, takesMine, signal, knownJobs, followed } = this.#options;
    const { clock } = this.#context;
    if (clock.monotonic() - this.#storedAgainAt >= STORED_AGAIN_MS) this.#storeAgain();
    const lists = takesMine || followed().length > MAX_REQUESTED;
    const listed = lists ? byNeed(await service.listJobs(signal)) : [];
    this.#listed = listed.length;
    this.#listedAt = clock.monotonic();
    const jobs = new Map(followed().map((job) => [job.jobId, job]));
    const unlisted = new Map(jobs);
    const settled = takesMine ? await knownJobs.settled() : new Map<JobId, string | null>();
    const resumed: JobInformation[] = [];
    for await (const information of inSlices(listed)) {
      const { id } = information;
      unlisted.delete(id);
      const job = jobs.get(id);
      if (job !== undefined) await this.#report(job, information);
      else if (settled.has(id) && runsAgain(information, settled.get(id) ?? null)) resumed.push(information);
    }
    // Each of these is done, whatever fails of the others.
    const steps = [
      () => this.#resume(resumed),
      () => (takesMine ? this.#takeMine(listed, jobs) : undefined),
      () => this.#askFor([...unlisted.values()], !lists),
      () => this.#keep(),
    ];
    const [failed] = await eachAlone(steps, (step) => step(), signal);
    if (failed !== undefined) throw failed.error;
  }

  /** The reports last: a stored one starts nothing again. */
  async #resume(jobs: readonly JobInformation[]): Promise<void> {
    if (jobs.length > 0) await this.#options.knownJobs.resume(jobs.map(({ id }) => id));
    await this.#keep(jobs);
    if (jobs.length > 0) this.#options.onNewJobs();
  }

  async #takeMine(listed: readonly JobInformation[], before: ReadonlyMap<JobId, FollowedJob>): Promise<void> {
    const { knownJobs, resultsOfMine, followed, onNewJobs } = this.#options;
    const seen = await seenIn(listed);
    const options = { context: this.#context, knownJobs, resultsOfMine, before: this.#seen };
    const { taken, waiting } = await takeMine(listed, options);
    this.#seen = seen;
    this.#waiting = waiting;
    if (taken === 0) return;
    onNewJobs();
    const jobs = new Map(followed().flatMap((job) => (before.has(job.jobId) ? [] : [[job.jobId, job] as const])));
    for await (const information of inSlices(listed)) {
      const job = jobs.get(information.id);
      if (job !== undefined) await this.#report(job, information);
    }
  }

  /**
   * Requests some of the jobs that no list names, those first that wait longest; for a refused one, tasks are searched by
   * probes. A job whose report fails waits for its own back-off. Rejects if nothing else was asked, and all fail.
   */
  async #askFor(jobs: readonly FollowedJob[], isAlone: boolean): Promise<void> {
    const { service, signal } = this.#options;
    const due = jobs
      .filter(({ reportPause }) => (reportPause?.remainingMs ?? 0) <= 0)
      .sort((a, b) => a.lastRequest - b.lastRequest);
    const turn = due.slice(0, MAX_REQUESTED);
    // By number, for many are requested at one moment.
    for (const job of turn) job.lastRequest = ++this.#requests;
    const failed = await eachAlone(turn, async (job) => this.#ask(job, service, signal), signal);
    const [first] = failed;
    if (isAlone && first !== undefined && failed.length === turn.length) throw first.error;
    for (const { thing: job, error } of failed) {
      // Its tasks may not be saved.
      job.storedReport = undefined;
      job.failures.logged.failed(scopeOf(job), error, 0, true);
      job.reportPause ??= new BackOff(this.#pauses);
      job.reportPause.failed(error);
      const { failures } = job.reportPause;
      if (failures >= LASTING_FAILURES) job.unreported(failures >= REFUSED_FAILURES);
    }
  }

  async #ask(job: FollowedJob, service: JobService, signal: AbortSignal): Promise<void> {
    const information = await service.getJob(job.jobId, signal).catch((thrown: unknown) => {
      const error = asJobtailError(thrown);
      if (!error.policy.isRefusal && error.code !== 'session-lost') throw error;
      job.failures.logged.failed(scopeOf(job), error, 0, true);
    });
    job.reportPause = undefined;
    if (information === undefined) return job.unreported(true);
    await this.#report(job, information);
  }

  /** Passes a report to the followed job. If it is not stored yet, its tasks are saved at once, the rest at the end. */
  async #report(job: FollowedJob, information: JobInformation): Promise<void> {
    const { id: jobId, tasks } = information;
    // It ended after the request: the next list shows whether it runs again.
    if (!job.isFollowed) return;
    // Also of a list: what failed of its own report before counts no more.
    job.reportPause = undefined;
    job.failures.logged.cleared(scopeOf(job));
    const text = JSON.stringify(information);
    if (job.storedReport === text) return job.reported(information, 0);
    job.storedReport = text;
    this.#reports.push(information);
    const ids = tasks.map(({ id }) => id);
    const { events } = this.#context;
    job.reported(information, await saveReported(jobId, ids, { ...this.#context, onFound: events.onTasksFound }));
  }

  /** Has all reports stored again, changed or not. */
  #storeAgain(): void {
    this.#storedAgainAt = this.#context.clock.monotonic();
    for (const job of this.#options.followed()) job.storedReport = undefined;
  }

  /** Stores the reports of this round, and `others`. */
  async #keep(others: readonly JobInformation[] = []): Promise<void> {
    const { store, clock, poll } = this.#context;
    const reports = [...this.#reports.splice(0), ...others];
    if (reports.length === 0) return;
    await poll.commitTogether(() => {
      const reportedAt = clock.now();
      for (const information of reports) {
        const { id: jobId, state, startTime } = information;
        if (store.jobs.get(jobId) === undefined) continue;
        const before = store.jobInformation.get(jobId);
        const isSame = before?.information.state === state && !isOtherRun(startTime, before.information.startTime);
        store.jobInformation.save({ jobId, information, since: isSame ? before.since : reportedAt, reportedAt });
      }
    });
  }

  #failed(error: JobtailError): void {
    const { failures, clock } = this.#context;
    this.#storeAgain();
    this.#backOff.failed(error);
    this.#failing = storedErrorFrom(error, this.#failing, clock.now());
    failures.failed(error.code === 'store' ? STATE : SCOPE, error);
    if (this.#backOff.failures < LASTING_FAILURES) return;
    for (const job of this.#options.followed()) job.unreported(false);
  }

  get #intervalMs(): number {
    const isIdle = this.#options.followed().length === 0 && this.#context.store.watchMine.inForce() === undefined;
    return isIdle ? IDLE_INTERVAL_MS : INTERVAL_MS;
  }

  async #note(delayMs: number): Promise<void> {
    const { clock, store, failures: logged } = this.#context;
    const requestedAt = clock.now();
    const failures = this.#backOff.failures;
    const counts = { listed: this.#listed, waiting: this.#waiting };
    const nextRequestAt = requestedAt + Math.round(delayMs);
    const row = { requestedAt, nextRequestAt, failures, error: this.#failing, ...counts };
    if (this.#options.signal.aborted) return;
    const noted = this.#context.poll.commitTogether(() => store.jobInformation.saveListing(row));
    await noted.then(() => logged.cleared(STATE)).catch(() => {});
  }
}

/** Whether a settled job is followed again; `startedBefore` is the start time of its last report. */
function runsAgain(information: JobInformation, startedBefore: string | null): boolean {
  const event = reportEvent(information, startedBefore === null ? null : jobTimeOf(startedBefore));
  return rowOf('settled', event).next !== undefined;
}

const scopeOf = ({ jobId }: FollowedJob) => `job ${jobId} report`;
