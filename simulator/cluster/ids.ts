/** The ids of jobs, tasks and specifications: numbers of 64 bits. */
import { JobtailError } from '../../src/errors.ts';
import { type JobId, parseLong, type TaskId } from '../../src/job.ts';

export class Ids {
  readonly #taken = { job: new Set<string>(), task: new Set<string>() };
  #next = 500;

  /** Takes the id of a job, the next free one by default. One that is none or is taken is a `usage` error. */
  job(wanted?: string): JobId {
    return this.#take('job', wanted) as JobId;
  }

  /** Takes the id of a task in the same way. */
  task(wanted?: string): TaskId {
    return this.#take('task', wanted) as TaskId;
  }

  /** The id of the specification of a task. */
  specification(): string {
    return this.#free();
  }

  #take(kind: 'job' | 'task', wanted: string | undefined): string {
    const taken = this.#taken[kind];
    const id = parseLong(wanted ?? this.#free(taken));
    if (id === undefined) throw new JobtailError('usage', `the ${kind} id "${wanted}" is no 64-bit number`);
    if (taken.has(id)) throw new JobtailError('usage', `${kind} ${id} exists already`);
    taken.add(id);
    return id;
  }

  #free(taken: ReadonlySet<string> = new Set()): string {
    do this.#next += 1;
    while (taken.has(String(this.#next)));
    return String(this.#next);
  }
}
