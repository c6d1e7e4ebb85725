/** One call at a time, shared by all who want its result. */
import { JobtailError } from '../../errors.ts';

interface Call<T> {
  readonly result: Promise<T>;
  readonly stop: AbortController;
  waiting: number;
}

export class SharedCall<T> {
  readonly #work: (signal: AbortSignal) => Promise<T>;
  #call: Call<T> | undefined;

  /** `work` gets a signal that fires only when all who wait for it have gone. */
  constructor(work: (signal: AbortSignal) => Promise<T>) {
    this.#work = work;
  }

  /** The result of the call under way, or of a new one. Rejects with `aborted` as soon as `signal` fires. */
  async join(signal: AbortSignal): Promise<T> {
    if (signal.aborted) throw stopped();
    this.#call ??= this.#start();
    const call = this.#call;
    call.waiting += 1;
    return new Promise((resolve, reject) => {
      const leave = () => {
        reject(stopped());
        call.waiting -= 1;
        if (call.waiting > 0) return;
        this.#forget(call);
        call.stop.abort();
      };
      const stay = () => signal.removeEventListener('abort', leave);
      signal.addEventListener('abort', leave, { once: true });
      call.result.then(resolve, reject).finally(stay);
    });
  }

  #start(): Call<T> {
    const stop = new AbortController();
    const call: Call<T> = { result: this.#work(stop.signal), stop, waiting: 0 };
    const forget = () => this.#forget(call);
    call.result.then(forget, forget);
    return call;
  }

  #forget(call: Call<T>): void {
    if (this.#call === call) this.#call = undefined;
  }
}

const stopped = () => new JobtailError('aborted', 'the sign-in was stopped');
