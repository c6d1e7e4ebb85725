/** What can end one call early: the caller's signal and the limit of its total time. */
import { setMaxListeners } from 'node:events';
import { JobtailError } from '../errors.ts';
import { addressOf, type Target } from './failures.ts';

/** The longest delay a timer takes; a longer one would fire at once. */
const MAX_DELAY_MS = 2 ** 31 - 1;

/**
 * One signal out of the caller's signal and the total time, whose reason is always a JobtailError.
 * Not AbortSignal.any: that one is kept alive by a long-lived signal of the caller for as long as the program runs.
 */
export class CallStop {
  readonly #controller = new AbortController();
  readonly #caller: AbortSignal;
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #onAbort = () => this.stop(new JobtailError('aborted', 'the call was stopped'));

  constructor(caller: AbortSignal, totalMs: number, target: Target) {
    this.#caller = caller;
    if (caller.aborted) {
      this.#onAbort();
      return;
    }
    // One signal may stop many calls at a time; each of them takes its listener away again.
    setMaxListeners(0, caller);
    caller.addEventListener('abort', this.#onAbort, { once: true });
    if (totalMs <= MAX_DELAY_MS) {
      const expired = () => this.stop(timeoutError(target, `did not answer completely within ${totalMs} ms`));
      this.#timer = setTimeout(expired, totalMs);
    }
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Ends the call with `reason`. */
  stop(reason: JobtailError): void {
    this.settle();
    this.#controller.abort(reason);
  }

  /** The call is over: nothing of it stays behind. */
  settle(): void {
    clearTimeout(this.#timer);
    this.#caller.removeEventListener('abort', this.#onAbort);
  }
}

/** A limit was reached; `what` says which. */
export function timeoutError(target: Target, what: string): JobtailError {
  return new JobtailError('timeout', `${addressOf(target)} ${what}`, {
    hint: 'the service or the way to it is slow; raise service.timeoutSeconds if it always needs longer',
  });
}
