/** How the tasks of one job end: a failure is logged once, saved, and retried after a back-off. */
import { BackOff } from '../../back-off.ts';
import { asJobtailError, type ErrorCode, type ErrorPolicy, type JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import type { Clock } from '../../system/clock.ts';
import { sourceStack } from '../../system/package-file.ts';
import { type PollContext, troubleFrom } from '../poll/poll.ts';
import type { Log } from '../ports.ts';
import type { IntervalLimits } from './pace.ts';
import { DUE_TASKS, type DueTask } from './scheduler.ts';

export interface RunsContext {
  readonly poll: PollContext;
  /** Of the agent as a whole. */
  readonly failures: Failures;
  readonly intervals: IntervalLimits;
  readonly clock: Clock;
  readonly log: Log;
  /** In [0, 1), for jitter. */
  readonly random: () => number;
}

/** A task that failed the last time. */
interface Failing {
  /** How often in a row. */
  readonly times: number;
  readonly retryAt: number;
  readonly error: JobtailError;
  readonly backOff: BackOff;
}

/** The result of a successful poll or pass. */
interface RunEnd {
  readonly grew: boolean;
  /** Entries of answers that were refused. */
  readonly refused?: number;
  /** How long its end may stay unsaid, in milliseconds; the usual time of a commit if left out. */
  readonly withinMs?: number;
  /** Since when it is stalled, in milliseconds; null: it is not; left out: as before. */
  readonly stalledMs?: number | null;
}

export class JobRuns {
  /** Of this job, its files among them. */
  readonly failures: Failures;
  readonly #jobId: JobId;
  readonly #scope: string;
  readonly #context: RunsContext;
  readonly #failing = new Map<DueTask, Failing>();

  constructor(jobId: JobId, context: RunsContext) {
    this.#jobId = jobId;
    this.#scope = `job ${jobId}`;
    this.#context = context;
    this.failures = new Failures(context.log, context.failures);
  }

  /** What fails, as the log names it: each task fails, and works again, by itself. */
  scopeOf(task: DueTask): string {
    return task === 'poll' ? this.#scope : `${this.#scope} ${task}`;
  }

  /** A task was answered by the service. */
  worked(task: DueTask): void {
    this.failures.worked(this.scopeOf(task));
  }

  /** Whether a task failed the last time. */
  isFailing(task: DueTask): boolean {
    return this.#failing.has(task);
  }

  /** The tasks that failed with something that is mended by now. */
  mended(isMended: (policy: ErrorPolicy) => boolean): DueTask[] {
    return [...this.#failing].flatMap(([task, { error }]) => (isMended(error.policy) ? [task] : []));
  }

  /** A task failed; how long it waits until it is tried again. */
  failed(task: DueTask, error: JobtailError): number {
    const { intervals, clock, random, log } = this.#context;
    const { minIntervalMs, maxIntervalMs: maxMs } = intervals;
    const { retryAfterMs = 0 } = error;
    if (error.code === 'internal') log.debug({ jobId: this.#jobId, stack: sourceStack(error) }, 'where it happened');
    const { backOff, times } = this.#failing.get(task) ?? {
      backOff: new BackOff({ firstMs: 2 * minIntervalMs, maxMs, nowMs: () => clock.monotonic(), random }),
      times: 0,
    };
    backOff.lengthen();
    backOff.pause(retryAfterMs);
    const delayMs = backOff.remainingMs;
    const retryAt = clock.now() + Math.round(delayMs);
    this.#failing.set(task, { backOff, times: times + 1, retryAt, error });
    this.failures.failed(this.scopeOf(task), error, retryAfterMs > maxMs ? retryAt : undefined);
    this.unawaited(this.#note({ grew: false }));
    return delayMs;
  }

  /** A task that failed is not tried again. */
  giveUp(task: DueTask): void {
    this.#failing.delete(task);
  }

  /** Tasks went through. Resolves when that is committed. */
  went(tasks: readonly DueTask[], end: RunEnd): Promise<void> {
    for (const task of tasks) this.#failing.delete(task);
    return this.#note(end);
  }

  /** No caller waits for this commit; a failure is logged. */
  unawaited(commit: Promise<void>): void {
    const { failures } = this.#context;
    commit.then(
      () => failures.over(STATE),
      (thrown: unknown) => failures.failed(STATE, asJobtailError(thrown)),
    );
  }

  /** Stores the end of a poll or pass, and the first of the current failures. */
  #note({ grew, refused = 0, withinMs, stalledMs }: RunEnd): Promise<void> {
    const jobId = this.#jobId;
    const { clock, poll } = this.#context;
    const { store, commit } = poll;
    const polledAt = clock.now();
    const [worst] = DUE_TASKS.flatMap((task) => this.#failing.get(task) ?? []);
    return commit(() => {
      const before = worst === undefined ? null : (store.jobs.get(jobId)?.error ?? null);
      const trouble = troubleFrom(worst?.error, before, polledAt);
      const error = worst === undefined || trouble === null ? null : { ...trouble, retryAt: worst.retryAt };
      const grownAt = grew ? polledAt : null;
      const stall = stalledMs == null ? stalledMs : Math.round(polledAt - stalledMs);
      store.jobs.endRun(jobId, {
        ...{ polledAt, grownAt, refused, failures: worst?.times ?? 0, error },
        ...(stall === undefined ? {} : { stalledAt: stall }),
      });
    }, withinMs);
  }
}

const SERVICE = 'the service';
/** The scope of failures of the store. */
export const STATE = 'the state';

interface Ongoing {
  readonly code: ErrorCode;
  failures: number;
  /** The end of the longest wait that was logged. */
  readonly waitsUntil: number;
}

/** Waits of several jobs that end within this time of each other count as one. */
const ONE_WAIT_MS = 60_000;

/**
 * Logs each failure once: when it starts, and when it clears, with the number of failures in between. A failure of the
 * service as a whole is one failure, however many jobs meet it.
 */
export class Failures {
  readonly #log: Log;
  readonly #ofAll: Failures;
  /** By their scopes. */
  readonly #ongoing = new Map<string, Ongoing>();

  /** `ofAll`: the failures of the agent, if these are of one job. */
  constructor(log: Log, ofAll?: Failures) {
    this.#log = log;
    this.#ofAll = ofAll ?? this;
  }

  /**
   * Records a failure of `scope` (a job, or one file of it). `waitsUntil` (wall clock): the service requested a longer
   * pause than the back-off.
   */
  failed(scope: string, error: JobtailError, waitsUntil = 0): void {
    if (error.policy.isOfService) this.#ofAll.#write(SERVICE, error, waitsUntil);
    else this.#write(scope, error, waitsUntil);
  }

  /** Records a success of `scope`; so the service responds, too. */
  worked(scope: string): void {
    this.over(scope);
    this.#ofAll.over(SERVICE);
  }

  /** The failure of `scope` is over, if there was any. */
  over(scope: string): void {
    const ongoing = this.#ongoing.get(scope);
    if (ongoing === undefined) return;
    this.#ongoing.delete(scope);
    this.#log.info({ scope, code: ongoing.code, failures: ongoing.failures }, `${scope} works again`);
  }

  #write(scope: string, error: JobtailError, waitsUntil: number): void {
    const ongoing = this.#ongoing.get(scope);
    const waits = waitsUntil > (ongoing?.waitsUntil ?? 0) + ONE_WAIT_MS;
    const until = new Date(waitsUntil).toISOString();
    const fields = {
      ...{ scope, code: error.code, err: error.message, hint: error.hint },
      ...(waits ? { retryAt: until } : {}),
    };
    if (ongoing?.code === error.code && !waits) {
      ongoing.failures++;
      this.#log.debug(fields, 'still failing');
      return;
    }
    this.#ongoing.set(scope, {
      code: error.code,
      failures: (ongoing?.failures ?? 0) + 1,
      waitsUntil: waits ? waitsUntil : (ongoing?.waitsUntil ?? 0),
    });
    const wait = waits ? `; the service asks to wait, and is called again at ${until}` : '';
    this.#log[error.policy.isAlarm ? 'error' : 'warn'](fields, `${scope} failed: ${error.message}${wait}`);
  }
}
