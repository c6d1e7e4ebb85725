/** Records how the runs of one job end: a failure is logged once, stored, and retried after a back-off. */
import { BackOff } from '../../back-off.ts';
import { asJobtailError, type ErrorPolicy, type JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import { Failures, STATE, storedErrorFrom } from '../failures.ts';
import { DUE_RUNS, type DueRun } from '../schedule/due-runs.ts';
import type { AgentContext } from './context.ts';

interface Failing {
  /** By the wall clock; undefined if it is not retried. */
  readonly retryAt: number | undefined;
  readonly error: JobtailError;
  readonly backOff: BackOff;
  /** some: a retry got past what failed, so it is not reported. in vain: a retry did so, and failed later. */
  readonly progress: 'none' | 'some' | 'in vain';
  /** `Failures.responses` at that time. */
  readonly responses: number;
}

interface FinishedRun {
  readonly grew: boolean;
  readonly refused?: number;
  /** Maximum delay of the commit, in milliseconds; the default delay if omitted. */
  readonly withinMs?: number;
  /** Milliseconds without growth, if the job is stalled; null: not stalled; omitted: unchanged. */
  readonly stalledMs?: number | null;
}

export class RunFailures {
  readonly logged: Failures;
  readonly #jobId: JobId;
  readonly #scope: string;
  readonly #context: AgentContext;
  readonly #failing = new Map<DueRun, Failing>();
  #resultsFailedBy: string | undefined;

  constructor(jobId: JobId, context: AgentContext) {
    this.#jobId = jobId;
    this.#scope = `job ${jobId}`;
    this.#context = context;
    this.logged = new Failures(context.log, context.failures);
  }

  scopeOf(kind: DueRun): string {
    return kind === 'poll' ? this.#scope : `${this.#scope} ${kind}`;
  }

  /** Logs the most frequent reason of failed results when it changes: many files may share it. */
  resultsSynced(): void {
    const { store, log } = this.#context;
    const first = store.results.reasons(this.#jobId).find(({ state }) => state === 'failed');
    if (first !== undefined && first.reason !== this.#resultsFailedBy)
      log.warn({ jobId: this.#jobId, files: first.files, reason: first.reason, file: first.name }, 'results failed');
    this.#resultsFailedBy = first?.reason;
  }

  isFailing(kind: DueRun): boolean {
    return this.#failing.has(kind);
  }

  /** Whether the service responded to other runs, of this job or others, since the last failure of this kind. */
  hasRespondedToOthers(kind: DueRun): boolean {
    return this.logged.responses > (this.#failing.get(kind)?.responses ?? Number.POSITIVE_INFINITY);
  }

  /** The failing kinds of run whose error may be solved now, by `isMended`. */
  mended(isMended: (policy: ErrorPolicy) => boolean): DueRun[] {
    return [...this.#failing].flatMap(([kind, { error }]) => (isMended(error.policy) ? [kind] : []));
  }

  /** Records a failure. Returns the delay of the retry, in milliseconds. */
  failed(kind: DueRun, error: JobtailError): number {
    const { clock, log, limits } = this.#context;
    if (error.code === 'internal') log.debug({ jobId: this.#jobId, stack: error.stack }, 'stack of an internal error');
    const backOff = this.#backOffOf(kind, error);
    const delayMs = backOff.remainingMs;
    const retryAt = clock.now() + Math.round(delayMs);
    const isLong = (error.retryAfterMs ?? 0) > limits.intervals.maxIntervalMs;
    void this.#record(kind, { backOff, retryAt, error }, isLong ? retryAt : undefined);
    return delayMs;
  }

  /** Records that the service responded to what failed. A run may go on for hours after that. */
  progressed(kind: DueRun): void {
    const failing = this.#failing.get(kind);
    if (failing?.progress !== 'none' || !failing.error.policy.isOfService) return;
    this.#failing.set(kind, { ...failing, progress: 'some' });
    this.inBackground(this.#note({ grew: false }));
  }

  /** Records a failure that is not retried; resolves when it is stored. */
  givenUp(kind: DueRun, error: JobtailError): Promise<void> {
    const backOff = this.#backOffOf(kind, error);
    this.#failing.clear();
    return this.#record(kind, { backOff, retryAt: undefined, error });
  }

  /** Rest of the pause after a failure, in milliseconds. */
  remainingMs(kind: DueRun): number {
    return this.#failing.get(kind)?.backOff.remainingMs ?? 0;
  }

  /** Resolves when it is stored; what failed goes on failing if that fails. */
  async succeeded(kinds: readonly DueRun[], end: FinishedRun): Promise<void> {
    const before = [...this.#failing].filter(([kind]) => kinds.includes(kind));
    for (const kind of kinds) this.#failing.delete(kind);
    try {
      await this.#note(end);
    } catch (thrown) {
      for (const [kind, failing] of before) this.#failing.set(kind, failing);
      throw thrown;
    }
  }

  inBackground(commit: Promise<void>): void {
    const { failures } = this.#context;
    commit.then(
      () => failures.cleared(STATE),
      (thrown: unknown) => failures.failed(STATE, asJobtailError(thrown)),
    );
  }

  /** Counts this failure. */
  #backOffOf(kind: DueRun, error: JobtailError): BackOff {
    const { clock, random, limits } = this.#context;
    const { minIntervalMs, maxIntervalMs: maxMs } = limits.intervals;
    const options = { firstMs: 2 * minIntervalMs, maxMs, nowMs: clock.monotonic, random };
    const backOff = this.#failing.get(kind)?.backOff ?? new BackOff(options);
    backOff.failed(error);
    return backOff;
  }

  /** What fails beside runs that work is a failure of the job, not of the service; a pass always is. */
  #record(kind: DueRun, one: Omit<Failing, 'progress' | 'responses'>, waitsUntil?: number): Promise<void> {
    const isAlone = kind === 'pass' || this.hasRespondedToOthers(kind);
    const { progress = 'none' } = this.#failing.get(kind) ?? {};
    const { responses } = this.logged;
    this.#failing.set(kind, { ...one, responses, progress: progress === 'none' ? progress : 'in vain' });
    this.logged.failed(this.scopeOf(kind), one.error, waitsUntil, isAlone);
    const noted = this.#note({ grew: false });
    this.inBackground(noted);
    return noted;
  }

  #note({ grew, refused = 0, withinMs, stalledMs }: FinishedRun): Promise<void> {
    const jobId = this.#jobId;
    const { clock, store, poll } = this.#context;
    const polledAt = clock.now();
    const first = DUE_RUNS.flatMap((kind) => this.#failing.get(kind) ?? []).find(({ progress }) => progress !== 'some');
    return poll.commitTogether(() => {
      const before = first === undefined ? null : (store.jobs.get(jobId)?.error ?? null);
      const stored = storedErrorFrom(first?.error, before, polledAt);
      const retry = first?.retryAt === undefined ? {} : { retryAt: first.retryAt };
      const error = stored && { ...stored, ...retry };
      const grownAt = grew ? polledAt : null;
      const failures = first?.backOff.failures ?? 0;
      const stalledAt = stalledMs == null ? stalledMs : Math.round(polledAt - stalledMs);
      store.jobs.endRun(jobId, { polledAt, grownAt, refused, failures, error, stalledAt });
    }, withinMs);
  }
}
