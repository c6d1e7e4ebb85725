/** Output that reaches the files after the state is final (docs/dev/servers.md 1.8 and 10.3). */
import type { SandboxHabits } from '../habits.ts';
import type { SubmittedTask } from './cluster.ts';

/** What a running task has not flushed yet: the last bytes of each of its files. */
const BUFFERED_BYTES = 4096;

export class Flushing {
  readonly #habits: Pick<SandboxHabits, 'flushSeconds'>;
  readonly #clock: () => number;
  /** Bytes that were shown, by the path of the file: they stay, also when the task is queued again. */
  readonly #shown = new Map<string, number>();

  /** `clock` in milliseconds. */
  constructor(habits: Pick<SandboxHabits, 'flushSeconds'>, clock: () => number) {
    this.#habits = habits;
    this.#clock = clock;
  }

  /** Of a file of `size` bytes that belongs to a task, how many are flushed. */
  flushedSize(task: SubmittedTask | undefined, path: string, size: number): number {
    const { flushSeconds } = this.#habits;
    if (flushSeconds === 0 || task === undefined) return size;
    const { endedAtMs = Number.POSITIVE_INFINITY } = task.run;
    const isFlushed = this.#clock() >= endedAtMs + flushSeconds * 1000;
    const flushed = Math.max(this.#shown.get(path) ?? 0, isFlushed ? size : size - BUFFERED_BYTES);
    const shown = Math.min(size, flushed);
    this.#shown.set(path, shown);
    return shown;
  }
}
