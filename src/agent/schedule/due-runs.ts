/**
 * The runs of one job that are due or under way. A job has one run of a kind at a time. A complete pass waits for the
 * other runs of its job, and they do not start beside it. Only polls do, while it waits for others than polls, and once
 * it needs the live files no more: a sync of results may take hours.
 */
import { LinkedAbort } from '../../linked-abort.ts';
import type { Clock } from '../../system/clock.ts';
import { gathered } from './pace.ts';
import type { Scheduled, Scheduler } from './scheduler.ts';

/** poll: the live files. results: a sync of the results. search: for the tasks of the job. pass: the complete pass. */
export const DUE_RUNS = ['poll', 'results', 'search', 'pass'] as const;
export type DueRun = (typeof DUE_RUNS)[number];

interface DueRunsOptions {
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly run: (kind: DueRun, signal: AbortSignal) => Promise<void>;
  /** Called when no run is under way or due. */
  readonly onIdle: () => void;
  /** Fires when the job is stopped. */
  readonly signal: AbortSignal;
}

/** The runs that a run waits for. Results wait for a poll, so that a slow job occupies one call, not two. */
const AFTER: Readonly<Record<DueRun, readonly DueRun[]>> = {
  poll: [],
  results: ['poll'],
  search: [],
  pass: ['poll', 'results', 'search'],
};

/** What is due at the same time starts in this order: each after those that it waits for, a pass instead of all. */
const IN_ORDER: readonly DueRun[] = ['pass', 'poll', 'results', 'search'];

interface Running {
  /** Whether it became due again since it began. */
  isDueAgain: boolean;
  /** Once it has begun. */
  stop: LinkedAbort | undefined;
  /** Of a pass that has begun: whether it needs the live files no more. */
  admitsPolls: boolean;
  ended: Promise<void>;
}

export class DueRuns implements Scheduled {
  readonly #options: DueRunsOptions;
  /** By the monotonic clock. */
  readonly #dueAt = new Map<DueRun, number>();
  readonly #running = new Map<DueRun, Running>();
  #isOver = false;

  constructor(options: DueRunsOptions) {
    this.#options = options;
  }

  get nextDue(): number {
    return Math.min(...this.#dueAt.values());
  }

  /** Makes a run due after `delayMs`, or earlier if that was requested. */
  plan(kind: DueRun, delayMs = 0): void {
    this.#dueBy(kind, this.#options.clock.monotonic() + delayMs);
  }

  /** The same for a recurring run; it starts together with others of about the same delay. */
  planAgain(kind: DueRun, delayMs: number): void {
    this.#dueBy(kind, gathered(this.#options.clock.monotonic() + delayMs, delayMs));
  }

  /** Cancels due runs; running ones continue. */
  cancel(kinds: readonly DueRun[] = DUE_RUNS): void {
    for (const kind of kinds) {
      this.#dueAt.delete(kind);
      const running = this.#running.get(kind);
      if (running !== undefined) running.isDueAgain = false;
    }
  }

  /** Cancels due runs, and stops running ones. */
  endAll(): void {
    this.cancel();
    for (const { stop } of this.#running.values()) stop?.abort();
  }

  /** Cancels due runs; resolves when running ones have ended. */
  async end(): Promise<void> {
    this.#isOver = true;
    this.cancel();
    await Promise.all([...this.#running.values()].map(({ ended }) => ended));
  }

  get areIdle(): boolean {
    return this.#dueAt.size + this.#running.size === 0;
  }

  startDue(now: number): void {
    for (const kind of IN_ORDER) {
      if ((this.#dueAt.get(kind) ?? Number.POSITIVE_INFINITY) > now) continue;
      this.#dueAt.delete(kind);
      const same = this.#running.get(kind);
      // A run that still waits for others does this work, too.
      if (same !== undefined) same.isDueAgain ||= same.stop !== undefined;
      // A run that is due during a pass is dropped; the end of the pass plans the next one.
      else if (this.#mayStart(kind)) this.#start(kind);
    }
  }

  /** The pass that is under way needs the live files no more; it polled them just now. */
  admitPolls(delayMs: number): void {
    const pass = this.#running.get('pass');
    if (pass === undefined) return;
    pass.admitsPolls = true;
    this.#dueAt.set('poll', this.#options.clock.monotonic() + delayMs);
    this.#options.scheduler.arrange(this);
  }

  #mayStart(kind: DueRun): boolean {
    const pass = this.#running.get('pass');
    const waitsLong = pass?.stop === undefined && (this.#running.has('results') || this.#running.has('search'));
    return pass === undefined || (kind === 'poll' && (pass.admitsPolls || waitsLong));
  }

  #dueBy(kind: DueRun, dueAt: number): void {
    if (this.#isOver) return;
    this.#dueAt.set(kind, Math.min(this.#dueAt.get(kind) ?? dueAt, dueAt));
    this.#options.scheduler.arrange(this);
  }

  /** Resolves when none of these is under way. */
  async #endOf(kinds: readonly DueRun[]): Promise<void> {
    const under = () => kinds.flatMap((kind) => this.#running.get(kind)?.ended ?? []);
    for (let others = under(); others.length > 0; others = under()) await Promise.all(others);
  }

  #start(kind: DueRun): void {
    const { run, onIdle, signal } = this.#options;
    const running: Running = { stop: undefined, isDueAgain: false, admitsPolls: false, ended: Promise.resolve() };
    this.#running.set(kind, running);
    running.ended = this.#endOf(AFTER[kind])
      .then(() => {
        running.stop = new LinkedAbort(signal);
        return run(kind, running.stop.signal);
      })
      .finally(() => {
        running.stop?.release();
        this.#running.delete(kind);
        if (running.isDueAgain) this.plan(kind);
        if (this.areIdle) onIdle();
      });
  }
}
