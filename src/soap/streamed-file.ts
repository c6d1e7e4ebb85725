/** The bytes of a file on their way to a sink. */
import type { Sink } from '../agent/ports.ts';
import { JobtailError } from '../errors.ts';
import type { Lifted } from './lifted.ts';

/** Hands bytes on in order and does not wait for a sink longer than for the caller's signal. */
export class StreamedFile implements Lifted {
  readonly #sink: Sink;
  readonly #signal: AbortSignal;
  #waiting: Buffer[] = [];
  #length = 0;
  #texts = 0;
  #failure: { readonly error: unknown } | undefined;

  constructor(sink: Sink, signal: AbortSignal) {
    this.#sink = sink;
    this.#signal = signal;
  }

  /** Bytes handed on; undefined if the answer holds no file. */
  get length(): number | undefined {
    return this.#texts === 0 ? undefined : this.#length;
  }

  /** How many results the answer holds; the contract allows one. */
  get count(): number {
    return this.#texts;
  }

  /** What the sink threw, in a box, for it may be anything. */
  get failure(): { readonly error: unknown } | undefined {
    return this.#failure;
  }

  begin(): void {
    this.#texts += 1;
  }

  bytes(bytes: Buffer): void {
    this.#waiting.push(bytes);
  }

  end(): void {}

  async flush(): Promise<void> {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const bytes of waiting) {
      try {
        await untilAborted(this.#sink, bytes, this.#signal);
      } catch (error) {
        this.#failure = { error };
        throw error;
      }
      this.#length += bytes.length;
    }
  }
}

async function untilAborted(sink: Sink, bytes: Buffer, signal: AbortSignal): Promise<void> {
  if (signal.aborted) throw aborted();
  let stop: () => void = () => undefined;
  const stopped = new Promise<never>((_, reject) => {
    stop = () => reject(aborted());
    signal.addEventListener('abort', stop, { once: true });
  });
  try {
    await Promise.race([Promise.resolve(sink(bytes)), stopped]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

function aborted(): JobtailError {
  return new JobtailError('aborted', 'the download was stopped');
}
