/** The bytes of a file on their way to a sink. */
import type { Sink } from '../agent/ports.ts';
import { JobtailError } from '../errors.ts';
import { GrowingBuffer } from '../growing-buffer.ts';
import type { Lifted } from './lifted.ts';

/** Hands bytes on in order and does not wait for a sink longer than for the caller's signal. */
export class StreamedFile implements Lifted {
  readonly #sink: Sink;
  readonly #signal: AbortSignal;
  readonly #waiting = new GrowingBuffer();
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
    this.#waiting.append(bytes);
  }

  end(): void {}

  async flush(): Promise<void> {
    if (this.#waiting.length === 0) return;
    if (this.#signal.aborted) throw aborted();
    try {
      const taken = this.#sink(this.#waiting.view());
      if (taken !== undefined) await untilAborted(taken, this.#signal);
    } catch (error) {
      this.#failure = { error };
      throw error;
    }
    this.#length += this.#waiting.length;
    this.#waiting.clear();
  }
}

async function untilAborted(taken: Promise<void>, signal: AbortSignal): Promise<void> {
  let stop: () => void = () => undefined;
  const stopped = new Promise<never>((_, reject) => {
    stop = () => reject(aborted());
    signal.addEventListener('abort', stop, { once: true });
  });
  try {
    await Promise.race([taken, stopped]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

function aborted(): JobtailError {
  return new JobtailError('aborted', 'the download was stopped');
}
