/** When the search for the tasks of one followed job is due, while the job service names none. */
import type { JobId } from '../../job.ts';
import { type Calls, QueuedRemote } from '../calls.ts';
import type { PollContext } from '../poll/poll.ts';
import type { Remote } from '../ports.ts';
import { type ProbeRound, TaskSearch, type TaskSearchOptions } from '../tasks/task-search.ts';
import { withJitter } from './pace.ts';
import type { DueRuns } from './scheduler.ts';

export interface JobSearchContext {
  readonly poll: PollContext;
  readonly calls: Calls;
  readonly remote: Remote;
  /** The job service is asked for tasks first. */
  readonly search: Omit<TaskSearchOptions, 'remote'>;
  /** In [0, 1), for jitter. */
  readonly random: () => number;
}

export class JobSearch {
  readonly #jobId: JobId;
  readonly #due: DueRuns;
  readonly #context: JobSearchContext;
  readonly #search: TaskSearch;
  /** Whether probes search for tasks, because no job service names them. */
  #isNeeded: boolean;

  constructor(jobId: JobId, due: DueRuns, context: JobSearchContext) {
    this.#jobId = jobId;
    this.#due = due;
    this.#context = context;
    const remote = new QueuedRemote(context.remote, context.calls, 'patient');
    this.#search = new TaskSearch(jobId, { ...context.search, remote });
    this.#isNeeded = !context.search.hasJobService;
  }

  plan(delayMs: number): void {
    const { taskSearches } = this.#context.poll.store;
    if (this.#isNeeded && taskSearches.get(this.#jobId) !== undefined) this.#due.plan('search', delayMs);
  }

  /** `namesTasks`: whether the job service names the tasks; undefined if it is not available. */
  reported(namesTasks: boolean | undefined): void {
    const wasNeeded = this.#isNeeded;
    this.#isNeeded = namesTasks === undefined ? wasNeeded || this.#hasNoTask : !namesTasks;
    if (!wasNeeded) this.plan(0);
  }

  /** Takes the names of a listing; plans a round at once if they suggest other tasks. */
  async listed(names: readonly string[]): Promise<void> {
    if (await this.#search.listed(names)) this.plan(0);
  }

  probe(signal: AbortSignal): Promise<ProbeRound> {
    const isListed = this.#context.poll.store.jobs.get(this.#jobId)?.results === true;
    return this.#search.probe(isListed, signal);
  }

  /** Plans the next round after `nextMs`; null: none. */
  planNext(nextMs: number | null): void {
    if (nextMs !== null && this.#isNeeded) this.#due.planAgain('search', withJitter(nextMs, this.#context.random()));
  }

  get #hasNoTask(): boolean {
    return this.#context.poll.store.taskSearches.knownTasks(this.#jobId).length === 0;
  }
}
