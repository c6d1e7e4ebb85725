/** Independent things fail alone: one that fails keeps none of the others from its turn. */
import { BackOff, type BackOffOptions } from './back-off.ts';
import { asJobtailError, type JobtailError, stopped } from './errors.ts';

export interface Failed<Thing> {
  readonly thing: Thing;
  readonly error: JobtailError;
}

/** Works on each thing, one after the other; returns those that failed. Rejects only when the signal fires: `aborted`. */
export async function eachAlone<Thing>(
  things: Iterable<Thing>,
  work: (thing: Thing) => unknown,
  signal?: AbortSignal,
): Promise<Failed<Thing>[]> {
  const failed: Failed<Thing>[] = [];
  for (const thing of things) {
    try {
      if (signal?.aborted) throw stopped();
      await work(thing);
    } catch (thrown) {
      const error = asJobtailError(thrown);
      if (signal?.aborted) throw error;
      failed.push({ thing, error });
    }
  }
  return failed;
}

/** A back-off for each of many independent things, by key. What worked, or never failed, takes no memory. */
export class BackOffs<Key> {
  readonly #options: BackOffOptions;
  readonly #failing = new Map<Key, BackOff>();

  constructor(options: BackOffOptions) {
    this.#options = options;
  }

  /** Whether the pause after the last failure is over, or there was none. */
  isDue(key: Key): boolean {
    return (this.#failing.get(key)?.remainingMs ?? 0) <= 0;
  }

  /** Starts the next pause of this key. Returns how often in a row it failed: 1 is to be logged. */
  failed(key: Key, error: JobtailError): number {
    const backOff = this.#failing.get(key) ?? new BackOff(this.#options);
    this.#failing.set(key, backOff);
    backOff.failed(error);
    return backOff.failures;
  }

  worked(key: Key): void {
    this.#failing.delete(key);
  }
}
