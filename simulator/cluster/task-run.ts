/** What a task does over time: it is queued, runs and ends, by its process or by an order; it may be queued again. */
import type { JOB_STATES } from '../../src/remote/soap/contract.ts';
import type { TaskExit, TaskProcess } from './task-process.ts';

/** docs/dev/soap.md 10.4. */
export type JobState = (typeof JOB_STATES)[number];
/** A state that is an end. */
export type EndState = Extract<JobState, 'Finished' | 'Failed' | 'Canceled'>;

interface TaskRunOptions {
  /** Milliseconds. */
  readonly clock: () => number;
  /** Starts the process; undefined if the task has none, and then only an order ends it. */
  readonly launch: () => Promise<TaskProcess | undefined>;
}

interface TaskEnd {
  readonly state: EndState;
  readonly atMs: number;
  /** Why it failed. */
  readonly message: string | null;
}

export class TaskRun {
  readonly #options: TaskRunOptions;
  #isSubmitted = false;
  #launching: Promise<TaskProcess | undefined> | undefined;
  #end: TaskEnd | undefined;
  /** Of this run. */
  process: TaskProcess | undefined;
  /** Of this run; undefined while it is queued. */
  startedAtMs: number | undefined;

  constructor(options: TaskRunOptions) {
    this.#options = options;
  }

  get state(): JobState {
    if (this.#end !== undefined) return this.#end.state;
    if (!this.#isSubmitted) return 'Configuring';
    return this.startedAtMs === undefined ? 'Queued' : 'Running';
  }

  get endedAtMs(): number | undefined {
    return this.#end?.atMs;
  }

  /** Why it failed; null if it did not. */
  get errorMessage(): string | null {
    return this.#end?.message ?? null;
  }

  /** Starts it, unless it has ended. A program that cannot be started is a `local-io` error. */
  async submit(): Promise<void> {
    this.#isSubmitted = true;
    if (this.state !== 'Queued') return;
    this.startedAtMs = this.#options.clock();
    this.#launching = this.#options.launch();
    try {
      this.process = await this.#launching;
    } catch (error) {
      this.#endAs('Failed', (error as Error).message);
      throw error;
    }
    void this.process?.exited.then((exit) => this.#endAs(exit.code === 0 ? 'Finished' : 'Failed', reasonOf(exit)));
  }

  /** Ends it in this state, unless it has ended. */
  async end(state: EndState, message: string | null = null): Promise<void> {
    this.#endAs(state, message);
    await this.kill();
  }

  /** Ends the process and everything it started. */
  async kill(): Promise<void> {
    await this.#launching?.catch(() => undefined);
    await this.process?.kill();
  }

  /** Queues it again; what still runs of it is ended. */
  async requeue(): Promise<void> {
    await this.kill();
    this.process = undefined;
    this.startedAtMs = undefined;
    this.#end = undefined;
    await this.submit();
  }

  /** The first end counts. */
  #endAs(state: EndState, message: string | null): void {
    this.#end ??= { state, message, atMs: this.#options.clock() };
  }
}

function reasonOf({ code, signal }: TaskExit): string | null {
  if (code === 0) return null;
  return code === null ? `The program was ended by ${signal}.` : `The program ended with exit code ${code}.`;
}
