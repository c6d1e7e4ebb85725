/** How the visits of each job ended: which errands fail, how often in a row, and what `status` shows of it. */
import type { ErrorCode, JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import type { Store } from '../../store/store.ts';
import { troubleFrom } from '../poll/poll.ts';
import type { Commit } from '../poll/poll-context.ts';
import { ERRANDS, type Errand } from './errands.ts';

export interface VisitEndsOptions {
  readonly store: Store;
  readonly commit: Commit;
  /** Wall clock, in milliseconds. */
  readonly now: () => number;
  /** How long the next visit waits after so many failures in a row, in milliseconds. */
  readonly delayMs: (times: number, error: JobtailError) => number;
}

/** What a visit that went through brought. */
export interface VisitEnd {
  readonly grew: boolean;
  /** Entries of answers that were refused. */
  readonly refused?: number;
  /** How long its end may stay unsaid, in milliseconds; the usual time of a commit if left out. */
  readonly withinMs?: number;
}

interface Failing {
  readonly times: number;
  readonly retryAt: number;
  readonly error: JobtailError;
}

export class VisitEnds {
  readonly #options: VisitEndsOptions;
  /** The errands of a job that failed last time. */
  readonly #failing = new Map<JobId, Map<Errand, Failing>>();

  constructor(options: VisitEndsOptions) {
    this.#options = options;
  }

  /** Whether an errand of the job failed last time. */
  isFailing(jobId: JobId, errand: Errand): boolean {
    return this.#failing.get(jobId)?.has(errand) === true;
  }

  /** The errands that failed last time with one of these codes. */
  failedWith(codes: readonly ErrorCode[]): (readonly [JobId, Errand])[] {
    return [...this.#failing].flatMap(([jobId, errands]) =>
      [...errands].flatMap(([errand, { error }]) => (codes.includes(error.code) ? [[jobId, errand] as const] : [])),
    );
  }

  /** Errands of a job went through. Resolves when that is committed. */
  went(jobId: JobId, errands: readonly Errand[], end: VisitEnd): Promise<void> {
    for (const errand of errands) this.#clear(jobId, errand);
    return this.#note(jobId, end);
  }

  /** An errand failed; how long it is to wait and until when, and a promise that resolves when that is committed. */
  failed(
    jobId: JobId,
    errand: Errand,
    error: JobtailError,
  ): { delayMs: number; retryAt: number; noted: Promise<void> } {
    const failing = this.#failing.get(jobId) ?? new Map<Errand, Failing>();
    const times = (failing.get(errand)?.times ?? 0) + 1;
    const delayMs = this.#options.delayMs(times, error);
    const retryAt = this.#options.now() + Math.round(delayMs);
    this.#failing.set(jobId, failing.set(errand, { times, retryAt, error }));
    return { delayMs, retryAt, noted: this.#note(jobId, { grew: false }) };
  }

  /** A failed errand that is not tried again. */
  giveUp(jobId: JobId, errand: Errand): void {
    this.#clear(jobId, errand);
  }

  forgetJob(jobId: JobId): void {
    this.#failing.delete(jobId);
  }

  #clear(jobId: JobId, errand: Errand): void {
    const failing = this.#failing.get(jobId);
    failing?.delete(errand);
    if (failing?.size === 0) this.#failing.delete(jobId);
  }

  #note(jobId: JobId, { grew, refused = 0, withinMs }: VisitEnd): Promise<void> {
    const { store, commit, now } = this.#options;
    const polledAt = now();
    const failing = this.#failing.get(jobId);
    const worst = ERRANDS.flatMap((errand) => failing?.get(errand) ?? [])[0];
    const failures = worst?.times ?? 0;
    const write = () => {
      const before = worst === undefined ? null : (store.jobs.get(jobId)?.error ?? null);
      const trouble = troubleFrom(worst?.error, before, polledAt);
      const error = worst === undefined || trouble === null ? null : { ...trouble, retryAt: worst.retryAt };
      store.jobs.endVisit(jobId, { polledAt, grownAt: grew ? polledAt : null, refused, failures, error });
    };
    return commit(write, withinMs);
  }
}
