/** The ids of jobs, tasks and specifications: numbers of 64 bits. */
import { createHash } from 'node:crypto';
import { JobtailError } from '../../errors.ts';
import { type JobId, parseJobId, parseTaskId, type TaskId } from '../../job.ts';
import type { SandboxHabits } from '../habits.ts';

export type IdHabits = Pick<SandboxHabits, 'specificationIds'>;

/** Bytes of an id without a rule: such ids lie far from each other, and a number holds them. */
const IRREGULAR_BYTES = 5;

export class Ids {
  readonly #habits: IdHabits;
  readonly #jobs = new Set<string>();
  readonly #tasks = new Set<string>();
  #next = 500;

  constructor(habits: IdHabits) {
    this.#habits = habits;
  }

  /** Takes the id of a job, the next free one by default. One that is none or is taken is a `usage` error. */
  job(wanted?: string): JobId {
    const id = parseJobId(wanted ?? this.#free(this.#jobs));
    if (id === undefined) throw new JobtailError('usage', `the job id "${wanted}" is no 64-bit number`);
    if (this.#jobs.has(id)) throw new JobtailError('usage', `job ${id} exists already`);
    this.#jobs.add(id);
    return id;
  }

  /** Takes the id of a task in the same way. */
  task(wanted?: string): TaskId {
    const id = parseTaskId(wanted ?? this.#free(this.#tasks));
    if (id === undefined) throw new JobtailError('usage', `the task id "${wanted}" is no 64-bit number`);
    if (this.#tasks.has(id)) throw new JobtailError('usage', `task ${id} exists already`);
    this.#tasks.add(id);
    return id;
  }

  /** The id of the specification of a task, by the habit. */
  specification(taskId: TaskId): string {
    const { specificationIds } = this.#habits;
    if (specificationIds === 'next') return this.#free();
    if (specificationIds === 'irregular') {
      return String(createHash('sha256').update(taskId).digest().readUIntBE(0, IRREGULAR_BYTES));
    }
    return String(BigInt.asIntN(64, BigInt(taskId) + BigInt(specificationIds)));
  }

  #free(taken: ReadonlySet<string> = new Set()): string {
    do this.#next += 1;
    while (taken.has(String(this.#next)));
    return String(this.#next);
  }
}
