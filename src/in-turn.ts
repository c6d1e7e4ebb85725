/** Work on one thing that is done by one caller after the other; who is stopped does not wait for the others. */
import { type JobtailError, stopped } from './errors.ts';

export class InTurn<Key> {
  /** The end of the last work of each key that has some. */
  readonly #ends = new Map<Key, Promise<void>>();

  /** Begins `work` when all before it has ended; rejects with `aborted` if the signal fires until then. */
  async run<T>(key: Key, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const before = this.#ends.get(key) ?? Promise.resolve();
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const last = before.then(() => ended);
    this.#ends.set(key, last);
    void last.then(() => this.#ends.get(key) === last && this.#ends.delete(key));
    try {
      await untilAborted(before, signal, stopped);
      return await work();
    } finally {
      end();
    }
  }
}

/** Waits for `work`, at most until the signal fires. @throws what `work` throws; what `aborted` returns */
export async function untilAborted(
  work: Promise<unknown>,
  signal: AbortSignal,
  aborted: () => JobtailError,
): Promise<void> {
  if (signal.aborted) throw aborted();
  let stop: () => void = () => undefined;
  const stopping = new Promise<never>((_, reject) => {
    stop = () => reject(aborted());
    signal.addEventListener('abort', stop, { once: true });
  });
  try {
    await Promise.race([work, stopping]);
    if (signal.aborted) throw aborted();
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
