/**
 * Says each failure once: when it begins, and when it is over with the number of failures in between. What concerns the
 * service as a whole is one failure, however many jobs meet it.
 */
import type { ErrorCode, JobtailError } from '../../errors.ts';
import type { Log } from '../ports.ts';

const SERVICE = 'the service';
/** The scope of failures of the store. */
export const STATE = 'the state';

interface Ongoing {
  readonly code: ErrorCode;
  failures: number;
  /** The end of the longest wait that was said. */
  readonly waitsUntil: number;
}

/** Jobs that are told to wait within so long of each other are told one and the same. */
const ONE_WAIT_MS = 60_000;

export class Failures {
  readonly #log: Log;
  readonly #ofAll: Failures;
  /** By their scopes. */
  readonly #ongoing = new Map<string, Ongoing>();

  /** `ofAll`: those of the agent, if these are of one job. */
  constructor(log: Log, ofAll?: Failures) {
    this.#log = log;
    this.#ofAll = ofAll ?? this;
  }

  /**
   * A visit of `scope` (a job, or one file of it) failed. `waitsUntil` (wall clock): the service wants it to wait longer
   * than the agent would by itself.
   */
  failed(scope: string, error: JobtailError, waitsUntil = 0): void {
    if (error.policy.isOfService) this.#ofAll.#say(SERVICE, error, waitsUntil);
    else this.#say(scope, error, waitsUntil);
  }

  /** A visit of `scope` went through; so the service answers, too. */
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

  #say(scope: string, error: JobtailError, waitsUntil: number): void {
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
