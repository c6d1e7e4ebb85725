/**
 * Says each trouble once: when it begins, and when it is over with the number of failures in between. What concerns
 * the service as a whole is one trouble, however many jobs meet it.
 */
import type { ErrorCode, JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import type { Log } from '../ports.ts';

const SERVICE = 'the service';

interface Ongoing {
  readonly code: ErrorCode;
  failures: number;
  /** The end of the longest wait that was said. */
  readonly waitsUntil: number;
}

/** Jobs that are told to wait within so long of each other are told one and the same. */
const ONE_WAIT_MS = 60_000;

export class Troubles {
  readonly #log: Log;
  readonly #ongoing = new Map<string, Ongoing>();

  constructor(log: Log) {
    this.#log = log;
  }

  /**
   * A visit of `scope` (a job, or one file of it) failed. `waitsUntil` (wall clock): the service wants it to wait longer
   * than the agent would by itself.
   */
  failed(scope: string, error: JobtailError, waitsUntil = 0): void {
    const whole = error.policy.isOfService ? SERVICE : scope;
    const ongoing = this.#ongoing.get(whole);
    const waits = waitsUntil > (ongoing?.waitsUntil ?? 0) + ONE_WAIT_MS;
    const until = new Date(waitsUntil).toISOString();
    const fields = {
      ...{ scope: whole, code: error.code, err: error.message, hint: error.hint },
      ...(waits ? { retryAt: until } : {}),
    };
    if (ongoing?.code === error.code && !waits) {
      ongoing.failures++;
      this.#log.debug(fields, 'still failing');
      return;
    }
    this.#ongoing.set(whole, {
      code: error.code,
      failures: (ongoing?.failures ?? 0) + 1,
      waitsUntil: waits ? waitsUntil : (ongoing?.waitsUntil ?? 0),
    });
    const wait = waits ? `; the service asks to wait, and is called again at ${until}` : '';
    this.#log[error.policy.isAlarm ? 'error' : 'warn'](fields, `${whole} failed: ${error.message}${wait}`);
  }

  /** A visit of `scope` went through; so the service answers, too. */
  worked(scope: string): void {
    this.over(scope);
    this.over(SERVICE);
  }

  /** Nobody wants to know of the job any more, nor of its files. */
  forgetJob(jobId: JobId): void {
    const scope = `job ${jobId}`;
    for (const one of this.#ongoing.keys()) {
      if (one === scope || one.startsWith(`${scope} `)) this.#ongoing.delete(one);
    }
  }

  /** The trouble of `scope` is over, if there was any. */
  over(scope: string): void {
    const ongoing = this.#ongoing.get(scope);
    if (ongoing === undefined) return;
    this.#ongoing.delete(scope);
    this.#log.info({ scope, code: ongoing.code, failures: ongoing.failures }, `${scope} works again`);
  }
}
