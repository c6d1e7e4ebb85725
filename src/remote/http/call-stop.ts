/** What can end one call early: the caller's signal and the limit of its total time. */
import { setMaxListeners } from 'node:events';
import { JobtailError } from '../../errors.ts';
import { LinkedAbort } from '../../linked-abort.ts';
import { addressOf, type Target } from './failures.ts';

/** The longest delay a timer takes; a longer one would fire at once. */
const MAX_DELAY_MS = 2 ** 31 - 1;

/** One signal out of the caller's signal and the total time, whose reason is always a JobtailError. */
export class CallStop extends LinkedAbort {
  readonly #timer: NodeJS.Timeout | undefined;

  constructor(caller: AbortSignal, totalMs: number, target: Target) {
    // One signal may stop many calls at a time; each of them takes its listener away again.
    setMaxListeners(0, caller);
    super(caller, () => new JobtailError('aborted', 'the call was stopped'));
    if (caller.aborted || totalMs > MAX_DELAY_MS) return;
    const expired = () => this.stop(timeoutError(target, `did not respond completely within ${totalMs} ms`));
    this.#timer = setTimeout(expired, totalMs);
  }

  /** Ends the call with `reason`. */
  stop(reason: JobtailError): void {
    this.settle();
    this.abort(reason);
  }

  /** The call is over: nothing of it stays behind. */
  settle(): void {
    clearTimeout(this.#timer);
    this.release();
  }
}

/** A limit was reached; `what` describes it. */
export function timeoutError(target: Target, what: string): JobtailError {
  return new JobtailError('timeout', `${addressOf(target)} ${what}`, {
    hint: 'the service or the way to it is slow; raise service.timeoutSeconds if it always needs longer',
  });
}
