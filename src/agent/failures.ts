/** The log of failures: each is logged when it begins and when it is over. */
import type { ErrorCode, JobtailError } from '../errors.ts';
import type { StoredError } from '../store/rows.ts';
import type { Log } from './ports/host.ts';

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
  #failuresOfService = 0;
  #responses = 0;

  /** `ofAll`: logs failures of the whole service; omitted for that instance itself. */
  constructor(log: Log, ofAll?: Failures) {
    this.#log = log;
    this.#ofAll = ofAll ?? this;
  }

  /**
   * Records a failure of `scope` (a job, or one file of it). `waitsUntil` (wall clock): end of a pause that the service
   * requested and that exceeds the maximum back-off. `isAlone`: logged for `scope` also if it is one of the service, and
   * so are those that follow it.
   */
  failed(scope: string, error: JobtailError, waitsUntil = 0, isAlone = false): void {
    const isOwn = isAlone || this.#ongoing.get(scope)?.code === error.code;
    if (error.policy.isOfService && !isOwn) {
      this.#ofAll.#failuresOfService += 1;
      this.#ofAll.#write(SERVICE, error, waitsUntil);
    } else this.#write(scope, error, waitsUntil);
  }

  /** The number of failures of the service so far, when a run begins. */
  get ofService(): number {
    return this.#ofAll.#failuresOfService;
  }

  /** The number of runs so far, of all jobs, with a certain response of the service. */
  get responses(): number {
    return this.#ofAll.#responses;
  }

  responded(): void {
    this.#ofAll.#responses += 1;
  }

  /** Records a run that the service worked for. If it failed meanwhile, the run may have had its responses before. */
  worked(ofServiceBefore: number): void {
    if (this.ofService === ofServiceBefore) this.#ofAll.cleared(SERVICE);
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

/** A failure as it is stored; `since` is when it was first seen, as long as its code is the same. */
export function storedErrorFrom(
  error: JobtailError | undefined,
  before: StoredError | null,
  now: number,
): StoredError | null {
  if (error === undefined) return null;
  const { code, message } = error;
  const since = before?.code === code ? before.since : now;
  return { code, message, hint: error.hint ?? null, since };
}
