/**
 * What is to be done for each job, and when: one timer for all, one errand of a kind and job at a time. A complete pass
 * has its job for itself: it waits for the others of the job, and they do not start beside it.
 */
import type { JobId } from '../../job.ts';
import type { Clock } from '../ports.ts';
import { gathered } from './interval.ts';
import { Schedule } from './schedule.ts';

/** live: a poll of the live files. results: a look at the results. pass: everything, to its end. */
export const ERRANDS = ['live', 'results', 'pass'] as const;
export type Errand = (typeof ERRANDS)[number];

export interface ErrandsOptions {
  readonly clock: Clock;
  /** Does one errand; never rejects. */
  readonly run: (jobId: JobId, errand: Errand) => Promise<void>;
}

/**
 * What an errand waits for if it runs for the same job. Results wait for a poll, so that a job that does not answer
 * takes one place among the calls, not two.
 */
const AFTER: Readonly<Record<Errand, readonly Errand[]>> = { live: [], results: ['live'], pass: ERRANDS };

interface Turn {
  readonly everyMs: number;
  readonly callback: () => void;
}

/** Timers hold at most 2^31 ms; an hour is long enough to look again. */
const LONGEST_TIMER_MS = 60 * 60_000;

export class Errands {
  readonly #options: ErrandsOptions;
  readonly #schedule = new Schedule();
  readonly #running = new Map<string, Promise<void>>();
  /** Those of the running ones that no longer wait for others. */
  readonly #begun = new Set<string>();
  #cancelTimer: (() => void) | undefined;
  /** When the timer goes off. */
  #armedFor = Number.POSITIVE_INFINITY;
  #turn: Turn | undefined;
  #stopped = false;

  constructor(options: ErrandsOptions) {
    this.#options = options;
  }

  /** Makes an errand due after `delayMs`, whatever it was before. */
  due(jobId: JobId, errand: Errand, delayMs: number): void {
    this.#dueAt(nameOf(jobId, errand), this.#options.clock.monotonic() + delayMs);
  }

  /** The same for one that comes round again and again: `delayMs` is the longest it waits. */
  dueAgain(jobId: JobId, errand: Errand, delayMs: number): void {
    this.#dueAt(nameOf(jobId, errand), gathered(this.#options.clock.monotonic() + delayMs, delayMs));
  }

  /** Takes back what is due of a job; what runs goes on. */
  cancel(jobId: JobId): void {
    for (const errand of ERRANDS) this.#schedule.remove(nameOf(jobId, errand));
  }

  /** Whether an errand waits for its time or runs. */
  has(jobId: JobId, errand: Errand): boolean {
    const name = nameOf(jobId, errand);
    return this.#schedule.has(name) || this.#running.has(name);
  }

  /** Whether any errand of the job waits for its time. */
  waits(jobId: JobId): boolean {
    return ERRANDS.some((errand) => this.#schedule.has(nameOf(jobId, errand)));
  }

  /**
   * Calls back from the loop itself, when it has begun all that was due, and at least every `everyMs`: silence means
   * that the loop no longer goes round.
   */
  onTurn(everyMs: number, callback: () => void): void {
    this.#turn = { everyMs, callback };
    this.#arm();
  }

  /** Starts nothing more, and waits for what runs. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelTimer?.();
    await Promise.all(this.#running.values());
  }

  #dueAt(name: string, dueAt: number): void {
    this.#schedule.set(name, dueAt);
    if (dueAt < this.#armedFor) this.#arm();
  }

  #arm(): void {
    this.#cancelTimer?.();
    this.#armedFor = Number.POSITIVE_INFINITY;
    const { clock } = this.#options;
    const longestMs = this.#turn?.everyMs ?? LONGEST_TIMER_MS;
    const next = this.#schedule.nextDue();
    if (this.#stopped || (next === undefined && this.#turn === undefined)) return;
    const now = clock.monotonic();
    this.#armedFor = Math.min(Math.max(now, next ?? Number.POSITIVE_INFINITY), now + longestMs);
    this.#cancelTimer = clock.timer(this.#armedFor - now, () => this.#startDue());
  }

  #startDue(): void {
    for (const name of this.#schedule.takeDue(this.#options.clock.monotonic())) {
      const [errand, jobId] = name.split(' ') as [Errand, JobId];
      const passes = errand !== 'pass' && this.#running.has(nameOf(jobId, 'pass'));
      // What is due beside a pass is done by it; its end makes the next one due.
      if (passes) continue;
      const same = this.#running.get(name);
      if (same !== undefined) {
        // One that still waits for others does what is due now, too.
        if (this.#begun.has(name)) void same.then(() => this.due(jobId, errand, 0));
        continue;
      }
      const others = AFTER[errand].flatMap((other) => this.#running.get(nameOf(jobId, other)) ?? []);
      const running = Promise.all(others)
        .then(() => {
          this.#begun.add(name);
          return this.#options.run(jobId, errand);
        })
        .finally(() => {
          this.#begun.delete(name);
          this.#running.delete(name);
        });
      this.#running.set(name, running);
    }
    this.#turn?.callback();
    this.#arm();
  }
}

const nameOf = (jobId: JobId, errand: Errand) => `${errand} ${jobId}`;
