/** The search for the tasks of one followed job: when it is due, as long as the job service names none. */
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
  /** Where a service reports jobs, it is asked for tasks first. */
  readonly search: TaskSearchOptions;
  /** In [0, 1), for jitter. */
  readonly random: () => number;
}

export class JobSearch {
  readonly #jobId: JobId;
  readonly #due: DueRuns;
  readonly #context: JobSearchContext;
  readonly #search: TaskSearch;
  /** Probes of the file-transfer service search for tasks: no job service names them. */
  #isNeeded: boolean;

  constructor(jobId: JobId, due: DueRuns, context: JobSearchContext) {
    this.#jobId = jobId;
    this.#due = due;
    this.#context = context;
    this.#search = new TaskSearch(jobId, context.search);
    this.#isNeeded = !context.search.hasJobService;
  }

  /** Plans a round after `delayMs`, if tasks are missing and no job service names them. */
  plan(delayMs: number): void {
    const { taskSearches } = this.#context.poll.store;
    if (this.#isNeeded && taskSearches.get(this.#jobId) !== undefined) this.#due.plan('search', delayMs);
  }

  /** Whether the job service names the tasks; undefined if it could not be reached, or has no answer. */
  reported(namesTasks: boolean | undefined): void {
    const wasNeeded = this.#isNeeded;
    this.#isNeeded = namesTasks === undefined ? wasNeeded || this.#hasNoTask : !namesTasks;
    if (!wasNeeded) this.plan(0);
  }

  /** A sync of the results listed these names; plans a round at once if they show other tasks. */
  async listed(names: readonly string[]): Promise<void> {
    if (await this.#search.listed(names)) this.plan(0);
  }

  /** Runs one round. @throws JobtailError */
  probe(signal: AbortSignal): Promise<ProbeRound> {
    const { poll, calls, remote } = this.#context;
    const isListed = poll.store.jobs.get(this.#jobId)?.results === true;
    return this.#search.probe({ remote: new QueuedRemote(remote, calls, 'patient'), isListed, signal });
  }

  /** Plans the round after one that needs another in `nextMs`; null for none. */
  planNext(nextMs: number | null): void {
    if (nextMs !== null && this.#isNeeded) this.#due.planAgain('search', withJitter(nextMs, this.#context.random()));
  }

  get #hasNoTask(): boolean {
    return this.#context.poll.store.taskSearches.knownTasks(this.#jobId).length === 0;
  }
}
