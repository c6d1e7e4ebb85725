/** Work on one thing that is done by one caller after the other; who is stopped does not wait for the others. */
import { JobtailError } from './errors.ts';

export class InTurn<Key> {
  /** The last work of each key that has some. */
  readonly #last = new Map<Key, Promise<unknown>>();

  /** Begins `work` when all before it has ended; rejects with `aborted` if the signal fires until then. */
  async run<T>(key: Key, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const begin = () => (signal.aborted ? Promise.reject(stopped()) : work());
    const running = before.then(begin, begin);
    this.#last.set(key, running);
    const forget = () => void (this.#last.get(key) === running && this.#last.delete(key));
    running.then(forget, forget);
    await untilAborted(
      before.catch(() => {}),
      signal,
      stopped,
    );
    return await running;
  }
}

const stopped = () => new JobtailError('aborted', 'it was stopped');

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
