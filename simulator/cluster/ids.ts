/** The ids of jobs, tasks and specifications: numbers of 64 bits. */
import { createHash } from 'node:crypto';
import { JobtailError } from '../../src/errors.ts';
import { type JobId, parseLong, type TaskId } from '../../src/job.ts';
import type { SandboxHabits } from '../habits.ts';

export type IdHabits = Pick<SandboxHabits, 'specificationIds'>;

/** Bytes of an id without a rule: such ids lie far from each other, and a number holds them. */
const IRREGULAR_BYTES = 5;

export class Ids {
  readonly #habits: IdHabits;
  readonly #taken = { job: new Set<string>(), task: new Set<string>() };
  #next = 500;

  constructor(habits: IdHabits) {
    this.#habits = habits;
  }

  /** Takes the id of a job, the next free one by default. One that is none or is taken is a `usage` error. */
  job(wanted?: string): JobId {
    return this.#take('job', wanted) as JobId;
  }

  /** Takes the id of a task in the same way. */
  task(wanted?: string): TaskId {
    return this.#take('task', wanted) as TaskId;
  }

  /** The id of the specification of a task, by the quirk. */
  specification(taskId: TaskId): string {
    const { specificationIds } = this.#habits;
    if (specificationIds === 'next') return this.#free();
    if (specificationIds === 'irregular') {
      return String(createHash('sha256').update(taskId).digest().readUIntBE(0, IRREGULAR_BYTES));
    }
    return taskId;
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
