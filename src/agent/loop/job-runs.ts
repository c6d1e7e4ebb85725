/** Records how the runs of one job end: a failure is logged once, stored, and retried after a back-off. */
import { BackOff } from '../../back-off.ts';
import { asJobtailError, type ErrorCode, type ErrorPolicy, type JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import { sourceStack } from '../../system/package-file.ts';
import type { Deps } from '../deps.ts';
import { type Commit, storedErrorFrom } from '../poll/poll.ts';
import type { Log } from '../ports.ts';
import type { IntervalLimits } from './pace.ts';
import { DUE_RUNS, type DueRun } from './scheduler.ts';

export interface JobRunsOptions {
  readonly deps: Deps;
  readonly intervals: IntervalLimits;
  readonly commit: Commit;
  /** Of all jobs. */
  readonly failures: Failures;
}

interface Failing {
  readonly times: number;
  /** By the wall clock; undefined if it is not retried. */
  readonly retryAt: number | undefined;
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
  readonly #options: JobRunsOptions;
  readonly #failing = new Map<DueRun, Failing>();
  #resultsFailedBy: string | undefined;

  constructor(jobId: JobId, options: JobRunsOptions) {
    this.#jobId = jobId;
    this.#scope = `job ${jobId}`;
    this.#options = options;
    this.failures = new Failures(options.deps.log, options.failures);
  }

  scopeOf(kind: DueRun): string {
    return kind === 'poll' ? this.#scope : `${this.#scope} ${kind}`;
  }

  worked(kind: DueRun): void {
    this.failures.worked(this.scopeOf(kind));
  }

  /** Logs the most frequent reason of failed results when it changes: many files may share it. */
  resultsSynced(): void {
    const { store, log } = this.#options.deps;
    const first = store.results.reasons(this.#jobId).find(({ state }) => state === 'failed');
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
    const { clock, log } = this.#options.deps;
    const { maxIntervalMs: maxMs } = this.#options.intervals;
    const { retryAfterMs = 0 } = error;
    if (error.code === 'internal')
      log.debug({ jobId: this.#jobId, stack: sourceStack(error) }, 'stack of an internal error');
    const { backOff, times } = this.#failing.get(kind) ?? { backOff: this.#newBackOff(), times: 0 };
    backOff.lengthen();
    backOff.pause(retryAfterMs);
    const delayMs = backOff.remainingMs;
    const retryAt = clock.now() + Math.round(delayMs);
    this.#failing.set(kind, { backOff, times: times + 1, retryAt, error });
    this.#log(kind, error, retryAfterMs > maxMs ? retryAt : undefined);
    this.inBackground(this.#note({ grew: false }));
    return delayMs;
  }

  /** Records a failure that is not retried. */
  givenUp(kind: DueRun, error: JobtailError): void {
    const { backOff, times } = this.#failing.get(kind) ?? { backOff: this.#newBackOff(), times: 0 };
    this.#failing.clear();
    this.#failing.set(kind, { backOff, times: times + 1, retryAt: undefined, error });
    this.#log(kind, error);
    this.inBackground(this.#note({ grew: false }));
  }

  /** Records a failure of what a command requested: the command has its answer, and does not retry. */
  commandFailed(kind: DueRun, error: JobtailError): void {
    this.#log(kind, error);
  }

  /** Rest of the pause after a failure, in milliseconds. */
  remainingMs(kind: DueRun): number {
    return this.#failing.get(kind)?.backOff.remainingMs ?? 0;
  }

  succeeded(kinds: readonly DueRun[], end: RunEnd): Promise<void> {
    for (const kind of kinds) this.#failing.delete(kind);
    return this.#note(end);
  }

  inBackground(commit: Promise<void>): void {
    const { failures } = this.#options;
    commit.then(
      () => failures.cleared(STATE),
      (thrown: unknown) => failures.failed(STATE, asJobtailError(thrown)),
    );
  }

  #newBackOff(): BackOff {
    const { clock, random } = this.#options.deps;
    const { minIntervalMs, maxIntervalMs: maxMs } = this.#options.intervals;
    return new BackOff({ firstMs: 2 * minIntervalMs, maxMs, nowMs: clock.monotonic, random });
  }

  /** A pass fails beside polls that work, so its failure is one of the job, not of the service. */
  #log(kind: DueRun, error: JobtailError, waitsUntil?: number): void {
    if (kind === 'pass') this.failures.failedAlone(this.scopeOf(kind), error, waitsUntil);
    else this.failures.failed(this.scopeOf(kind), error, waitsUntil);
  }

  #note({ grew, refused = 0, withinMs, stalledMs }: RunEnd): Promise<void> {
    const jobId = this.#jobId;
    const { clock, store } = this.#options.deps;
    const { commit } = this.#options;
    const polledAt = clock.now();
    const [first] = DUE_RUNS.flatMap((kind) => this.#failing.get(kind) ?? []);
    return commit(() => {
      const before = first === undefined ? null : (store.jobs.get(jobId)?.error ?? null);
      const stored = storedErrorFrom(first?.error, before, polledAt);
      const retry = first?.retryAt === undefined ? {} : { retryAt: first.retryAt };
      const error = stored === null ? null : { ...stored, ...retry };
      const grownAt = grew ? polledAt : null;
      const stall = stalledMs == null ? stalledMs : Math.round(polledAt - stalledMs);
      store.jobs.endRun(jobId, {
        polledAt,
        grownAt,
        refused,
        failures: first?.times ?? 0,
        error,
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

  /** The same for a failure that is logged for `scope` although it may be one of the service. */
  failedAlone(scope: string, error: JobtailError, waitsUntil = 0): void {
    this.#write(scope, error, waitsUntil);
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
      scope,
      code: error.code,
      err: error.message,
      hint: error.hint,
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
