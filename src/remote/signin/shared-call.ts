/** One call at a time, shared by all who want its result. */
import { JobtailError } from '../../errors.ts';

interface Call<T> {
  readonly result: Promise<T>;
  readonly stop: AbortController;
  waiting: number;
}

/**
 * A function that resolves with the result of the call under way, or of a new one; it rejects with `aborted` as soon as
 * its signal fires. `work` gets a signal that fires only when all who wait for the call have gone.
 */
export function sharedCall<T>(work: (signal: AbortSignal) => Promise<T>): (signal: AbortSignal) => Promise<T> {
  let current: Call<T> | undefined;
  const forget = (call: Call<T>) => {
    if (current === call) current = undefined;
  };
  const start = () => {
    const stop = new AbortController();
    const call: Call<T> = { result: work(stop.signal), stop, waiting: 0 };
    call.result.finally(() => forget(call)).catch(() => {});
    return call;
  };
  return async (signal) => {
    if (signal.aborted) throw stopped();
    current ??= start();
    const call = current;
    call.waiting += 1;
    return new Promise((resolve, reject) => {
      const leave = () => {
        reject(stopped());
        call.waiting -= 1;
        if (call.waiting > 0) return;
        forget(call);
        call.stop.abort();
      };
      const stay = () => signal.removeEventListener('abort', leave);
      signal.addEventListener('abort', leave, { once: true });
      call.result.then(resolve, reject).finally(stay);
    });
  };
}

const stopped = () => new JobtailError('aborted', 'the sign-in was stopped');
