/** Records how the runs of one job end: a failure is logged once, stored, and retried after a back-off. */
import { BackOff } from '../../back-off.ts';
import { asJobtailError, type ErrorCode, type ErrorPolicy, type JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import type { Clock } from '../../system/clock.ts';
import { sourceStack } from '../../system/package-file.ts';
import { type PollContext, storedErrorFrom } from '../poll/poll.ts';
import type { Log } from '../ports.ts';
import type { IntervalLimits } from './pace.ts';
import { DUE_RUNS, type DueRun } from './scheduler.ts';

export interface RunsContext {
  readonly poll: PollContext;
  readonly failures: Failures;
  readonly intervals: IntervalLimits;
  readonly clock: Clock;
  readonly log: Log;
  /** In [0, 1), for jitter. */
  readonly random: () => number;
}

interface Failing {
  readonly times: number;
  readonly retryAt: number;
  readonly error: JobtailError;
  readonly backOff: BackOff;
}

interface RunEnd {
  readonly grew: boolean;
  readonly refused?: number;
  /** Maximum delay of the commit, in milliseconds; the default delay if omitted. */
  readonly withinMs?: number;
  /** Milliseconds without growth, if the job is stalled; null: not stalled; omitted: unchanged. */
  readonly stalledMs?: number | null;
}

export class JobRuns {
  readonly failures: Failures;
  readonly #jobId: JobId;
  readonly #scope: string;
  readonly #context: RunsContext;
  readonly #failing = new Map<DueRun, Failing>();
  #resultsFailedBy: string | undefined;

  constructor(jobId: JobId, context: RunsContext) {
    this.#jobId = jobId;
    this.#scope = `job ${jobId}`;
    this.#context = context;
    this.failures = new Failures(context.log, context.failures);
  }

  scopeOf(kind: DueRun): string {
    return kind === 'poll' ? this.#scope : `${this.#scope} ${kind}`;
  }

  worked(kind: DueRun): void {
    this.failures.worked(this.scopeOf(kind));
  }

  /** Logs the most frequent reason of failed results when it changes: many files may share it. */
  resultsSynced(): void {
    const { poll, log } = this.#context;
    const first = poll.store.results.reasons(this.#jobId).find(({ state }) => state === 'failed');
    if (first !== undefined && first.reason !== this.#resultsFailedBy)
      log.warn({ jobId: this.#jobId, files: first.files, reason: first.reason, file: first.name }, 'results failed');
    this.#resultsFailedBy = first?.reason;
  }

  isFailing(kind: DueRun): boolean {
    return this.#failing.has(kind);
  }

  /** The failing kinds of run whose error may be solved now, by `isMended`. */
  mended(isMended: (policy: ErrorPolicy) => boolean): DueRun[] {
    return [...this.#failing].flatMap(([kind, { error }]) => (isMended(error.policy) ? [kind] : []));
  }

  /** Records a failure. Returns the delay of the retry, in milliseconds. */
  failed(kind: DueRun, error: JobtailError): number {
    const { intervals, clock, random, log } = this.#context;
    const { minIntervalMs, maxIntervalMs: maxMs } = intervals;
    const { retryAfterMs = 0 } = error;
    if (error.code === 'internal')
      log.debug({ jobId: this.#jobId, stack: sourceStack(error) }, 'stack of an internal error');
    const { backOff, times } = this.#failing.get(kind) ?? {
      backOff: new BackOff({ firstMs: 2 * minIntervalMs, maxMs, nowMs: () => clock.monotonic(), random }),
      times: 0,
    };
    backOff.lengthen();
    backOff.pause(retryAfterMs);
    const delayMs = backOff.remainingMs;
    const retryAt = clock.now() + Math.round(delayMs);
    this.#failing.set(kind, { backOff, times: times + 1, retryAt, error });
    this.failures.failed(this.scopeOf(kind), error, retryAfterMs > maxMs ? retryAt : undefined);
    this.inBackground(this.#note({ grew: false }));
    return delayMs;
  }

  giveUp(kind: DueRun): void {
    this.#failing.delete(kind);
  }

  succeeded(kinds: readonly DueRun[], end: RunEnd): Promise<void> {
    for (const kind of kinds) this.#failing.delete(kind);
    return this.#note(end);
  }

  inBackground(commit: Promise<void>): void {
    const { failures } = this.#context;
    commit.then(
      () => failures.cleared(STATE),
      (thrown: unknown) => failures.failed(STATE, asJobtailError(thrown)),
    );
  }

  #note({ grew, refused = 0, withinMs, stalledMs }: RunEnd): Promise<void> {
    const jobId = this.#jobId;
    const { clock, poll } = this.#context;
    const { store, commit } = poll;
    const polledAt = clock.now();
    const [first] = DUE_RUNS.flatMap((kind) => this.#failing.get(kind) ?? []);
    return commit(() => {
      const before = first === undefined ? null : (store.jobs.get(jobId)?.error ?? null);
      const stored = storedErrorFrom(first?.error, before, polledAt);
      const error = first === undefined || stored === null ? null : { ...stored, retryAt: first.retryAt };
      const grownAt = grew ? polledAt : null;
      const stall = stalledMs == null ? stalledMs : Math.round(polledAt - stalledMs);
      store.jobs.endRun(jobId, {
        ...{ polledAt, grownAt, refused, failures: first?.times ?? 0, error },
        ...(stall === undefined ? {} : { stalledAt: stall }),
      });
    }, withinMs);
  }
}

const SERVICE = 'the service';
export const STATE = 'the state';

interface Ongoing {
  readonly code: ErrorCode;
  failures: number;
  /** End of the longest pause that was logged. */
  readonly waitsUntil: number;
}

/** Pauses of several jobs that end within this time of each other are logged once. */
const ONE_WAIT_MS = 60_000;

/**
 * Logs a failure when it starts, when its code changes, when the server requests a longer pause, and when it clears, with
 * the number of failed attempts. A failure of the service as a whole is logged once for all jobs.
 */
export class Failures {
  readonly #log: Log;
  readonly #ofAll: Failures;
  readonly #ongoing = new Map<string, Ongoing>();

  /** `ofAll`: logs failures of the whole service; omitted for that instance itself. */
  constructor(log: Log, ofAll?: Failures) {
    this.#log = log;
    this.#ofAll = ofAll ?? this;
  }

  /**
   * Records a failure of `scope` (a job, or one file of it). `waitsUntil` (wall clock): end of a pause that the service
   * requested and that exceeds the maximum back-off.
   */
  failed(scope: string, error: JobtailError, waitsUntil = 0): void {
    if (error.policy.isOfService) this.#ofAll.#write(SERVICE, error, waitsUntil);
    else this.#write(scope, error, waitsUntil);
  }

  worked(scope: string): void {
    this.cleared(scope);
    this.#ofAll.cleared(SERVICE);
  }

  cleared(scope: string): void {
    const ongoing = this.#ongoing.get(scope);
    if (ongoing === undefined) return;
    this.#ongoing.delete(scope);
    this.#log.info({ scope, code: ongoing.code, failures: ongoing.failures }, 'operation recovered');
  }

  #write(scope: string, error: JobtailError, waitsUntil: number): void {
    const ongoing = this.#ongoing.get(scope);
    const waits = waitsUntil > (ongoing?.waitsUntil ?? 0) + ONE_WAIT_MS;
    const fields = {
      ...{ scope, code: error.code, err: error.message, hint: error.hint },
      ...(waits ? { retryAt: new Date(waitsUntil).toISOString() } : {}),
    };
    if (ongoing?.code === error.code && !waits) {
      ongoing.failures++;
      this.#log.debug(fields, 'operation still failing');
      return;
    }
    this.#ongoing.set(scope, {
      code: error.code,
      failures: (ongoing?.failures ?? 0) + 1,
      waitsUntil: waits ? waitsUntil : (ongoing?.waitsUntil ?? 0),
    });
    this.#log[error.policy.isAlarm ? 'error' : 'warn'](fields, 'operation failed');
  }
}
