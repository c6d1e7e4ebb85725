/** The searches for the tasks of one followed job, while the job service names none. */
import type { JobInformation } from '../../job-information.ts';
import { withJitter } from '../schedule/pace.ts';
import { saveReported, TaskSearch } from '../tasks/task-search.ts';
import { isFollowed } from './job-life.ts';
import type { OneJob } from './one-job.ts';

export class SearchRun {
  readonly #job: OneJob;
  readonly #search: TaskSearch;
  /** Whether probes search for tasks, because no job service names them. */
  #isNeeded: boolean;

  constructor(job: OneJob) {
    const { jobId, context } = job;
    this.#job = job;
    this.#search = new TaskSearch(jobId, {
      ...context,
      remote: context.waiting.patient,
      hasJobService: context.jobService !== null,
      onFound: context.events.onTasksFound,
    });
    this.#isNeeded = context.jobService === null;
  }

  plan(delayMs?: number): void {
    const { jobId, context, due } = this.#job;
    if (this.#isNeeded && context.store.taskSearches.get(jobId) !== undefined) due.plan('search', delayMs);
  }

  /** `namesTasks`: whether the job service names the tasks; undefined if it is not available. */
  reported(namesTasks: boolean | undefined): void {
    const wasNeeded = this.#isNeeded;
    this.#isNeeded = namesTasks === undefined ? wasNeeded || this.#hasNoTask : !namesTasks;
    if (!wasNeeded) this.plan();
  }

  /** Takes the names of a listing; plans a round at once if they suggest other tasks. */
  async listed(names: readonly string[]): Promise<void> {
    if (await this.#search.listed(names)) this.plan();
  }

  /** Searches for tasks; polls found ones at once. */
  async run(signal: AbortSignal): Promise<void> {
    const { jobId, context, due } = this.#job;
    const { store, clock, random } = context;
    const startedAt = clock.monotonic();
    const { found, nextMs } = await this.#search.probe(store.jobs.get(jobId)?.results === true, signal);
    if (!isFollowed(this.#job.life)) return;
    if (found === 0) this.#job.wasQuiet(startedAt, true);
    else {
      this.#job.happened('growth');
      due.plan('poll');
    }
    if (nextMs !== null && this.#isNeeded) due.planAgain('search', withJitter(nextMs, random()));
  }

  /** For a pass of a job that is not followed: nothing else searches its tasks. @throws JobtailError of the file transfer */
  async once(report: JobInformation | undefined, signal: AbortSignal): Promise<void> {
    const { jobId, context } = this.#job;
    const { store, log, events } = context;
    if (store.taskSearches.get(jobId) === undefined) return;
    const reported = report?.tasks.map(({ id }) => id) ?? [];
    if (reported.length > 0) await saveReported(jobId, reported, { ...context, onFound: events.onTasksFound });
    else await this.#search.probe(false, signal);
    const hint = `if the job has tasks, run agent watch ${jobId} --task ID`;
    if (this.#hasNoTask) log.warn({ jobId, hint }, 'no task found, no live files to copy');
  }

  get #hasNoTask(): boolean {
    const { jobId, context } = this.#job;
    return context.store.taskSearches.knownTasks(jobId).length === 0;
  }
}
