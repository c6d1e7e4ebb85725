/**
 * What is to be done for one job, and when: each task at its own time, one of a kind at a time. A complete pass has the
 * job for itself: it waits for the others, and they do not start beside it.
 */
import type { Clock } from '../../system/clock.ts';
import { gathered } from './pace.ts';
import type { Scheduled, Scheduler } from './scheduler.ts';

/**
 * poll: of the live files. results: a sync of the results. search: for the tasks of the job. pass: everything, to its end.
 */
export const DUE_TASKS = ['poll', 'results', 'search', 'pass'] as const;
export type DueTask = (typeof DUE_TASKS)[number];

export interface DueTasksOptions {
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  /** Does one of them; never rejects. */
  readonly run: (task: DueTask) => Promise<void>;
  /** Nothing runs any more, and nothing is due. */
  readonly onIdle: () => void;
}

/**
 * What a task waits for if that runs. Results wait for a poll, so that a job that does not answer takes one place among
 * the calls, not two.
 */
const AFTER: Readonly<Record<DueTask, readonly DueTask[]>> = {
  poll: [],
  results: ['poll'],
  search: [],
  pass: ['poll', 'results', 'search'],
};

const NEVER: Readonly<Record<DueTask, number>> = {
  poll: Number.POSITIVE_INFINITY,
  results: Number.POSITIVE_INFINITY,
  search: Number.POSITIVE_INFINITY,
  pass: Number.POSITIVE_INFINITY,
};

interface Running {
  /** It no longer waits for others. */
  hasBegun: boolean;
  /** It became due again since it began. */
  isDueAgain: boolean;
  ended: Promise<void>;
}

export class DueTasks implements Scheduled {
  readonly #options: DueTasksOptions;
  /** By the clock that only goes forward; infinite while it is not due. */
  readonly #dueAt: Record<DueTask, number> = { ...NEVER };
  readonly #running: Record<DueTask, Running | undefined> = {
    poll: undefined,
    results: undefined,
    search: undefined,
    pass: undefined,
  };
  #isOver = false;

  constructor(options: DueTasksOptions) {
    this.#options = options;
  }

  get nextDue(): number {
    const { poll, results, search, pass } = this.#dueAt;
    return Math.min(poll, results, search, pass);
  }

  /** Makes a task due after `delayMs`, whatever it was before. */
  due(task: DueTask, delayMs: number): void {
    this.#setDue(task, this.#options.clock.monotonic() + delayMs);
  }

  /** Makes one due that comes round again and again: `delayMs` is the longest it waits. */
  dueAgain(task: DueTask, delayMs: number): void {
    this.#setDue(task, gathered(this.#options.clock.monotonic() + delayMs, delayMs));
  }

  /** Takes back what is due; what runs goes on. */
  cancel(): void {
    Object.assign(this.#dueAt, NEVER);
    for (const running of this.#allRunning) running.isDueAgain = false;
  }

  /** Nothing is due any more, whatever still runs; resolves when that has ended. */
  async end(): Promise<void> {
    this.#isOver = true;
    this.cancel();
    await Promise.all(this.#allRunning.map(({ ended }) => ended));
  }

  /** Whether a task waits for its time or runs. */
  has(task: DueTask): boolean {
    return this.#dueAt[task] < NEVER[task] || this.#running[task] !== undefined;
  }

  get areIdle(): boolean {
    return this.nextDue === Number.POSITIVE_INFINITY && this.#allRunning.length === 0;
  }

  startDue(now: number): void {
    for (const task of DUE_TASKS.toReversed()) {
      if (this.#dueAt[task] > now) continue;
      this.#dueAt[task] = NEVER[task];
      const same = this.#running[task];
      // One that still waits for others does what is due now, too.
      if (same !== undefined) same.isDueAgain ||= same.hasBegun;
      // What is due beside a pass is done by it; its end makes the next one due.
      else if (this.#running.pass === undefined) this.#start(task);
    }
  }

  get #allRunning(): readonly Running[] {
    return Object.values(this.#running).filter((running) => running !== undefined);
  }

  #setDue(task: DueTask, dueAt: number): void {
    if (this.#isOver) return;
    this.#dueAt[task] = dueAt;
    this.#options.scheduler.arrange(this);
  }

  #start(task: DueTask): void {
    const { run, onIdle } = this.#options;
    const others = AFTER[task].flatMap((other) => this.#running[other]?.ended ?? []);
    const running: Running = { hasBegun: false, isDueAgain: false, ended: Promise.resolve() };
    this.#running[task] = running;
    running.ended = Promise.all(others)
      .then(() => {
        running.hasBegun = true;
        return run(task);
      })
      .finally(() => {
        this.#running[task] = undefined;
        if (running.isDueAgain) this.due(task, 0);
        if (this.areIdle) onIdle();
      });
  }
}
