/** The bytes of a file on their way to a sink. */
import type { Sink } from '../../agent/ports.ts';
import { JobtailError } from '../../errors.ts';
import { GrowingBuffer } from '../../growing-buffer.ts';
import { malformed } from '../wrong-answers.ts';
import type { Lifted } from './lifted.ts';

/** The sink is called for so many bytes: each call, and each write that comes of it, has a price of its own. */
const PIECE_BYTES = 256 * 1024;

/** Hands bytes on in order, in pieces: while the sink has one, the next one is gathered. */
export class StreamedFile implements Lifted {
  readonly #sink: Sink;
  readonly #signal: AbortSignal;
  #gathered = new GrowingBuffer();
  /** What the sink has. */
  #handedOn = new GrowingBuffer();
  #taken: Promise<void> = Promise.resolve();
  #inside = false;
  #length = 0;
  #begun = false;
  #failure: { readonly error: unknown } | undefined;

  constructor(sink: Sink, signal: AbortSignal) {
    this.#sink = sink;
    this.#signal = signal;
  }

  /** Bytes that the sink has taken; undefined if the answer holds no file. */
  get length(): number | undefined {
    return this.#begun ? this.#length : undefined;
  }

  /** What the sink threw, in a box, for it may be anything. */
  get failure(): { readonly error: unknown } | undefined {
    return this.#failure;
  }

  /** @throws JobtailError malformed for a second file: the sink may have used the first one */
  begin(): void {
    if (this.#begun) throw malformed('it holds more than one file');
    this.#begun = true;
    this.#inside = true;
  }

  bytes(bytes: Buffer): void {
    this.#gathered.append(bytes);
  }

  end(): void {
    this.#inside = false;
  }

  /** Waits for the sink, but no longer than for the caller's signal; behind the end of the file it has taken all. */
  async flush(): Promise<void> {
    if (this.#inside && this.#gathered.length < PIECE_BYTES) return;
    await untilAborted(this.#taken, this.#signal);
    if (this.#gathered.length === 0) return;
    [this.#gathered, this.#handedOn] = [this.#handedOn, this.#gathered];
    this.#gathered.clear();
    this.#taken = this.#handOn(this.#handedOn.view());
    // The next await throws it.
    this.#taken.catch(() => undefined);
    if (!this.#inside) await untilAborted(this.#taken, this.#signal);
  }

  async #handOn(bytes: Buffer): Promise<void> {
    try {
      await this.#sink(bytes);
      this.#length += bytes.length;
    } catch (error) {
      this.#failure = { error };
      throw error;
    }
  }
}

async function untilAborted(taken: Promise<void>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) throw aborted();
  let stop: () => void = () => undefined;
  const stopped = new Promise<never>((_, reject) => {
    stop = () => reject(aborted());
    signal.addEventListener('abort', stop, { once: true });
  });
  try {
    await Promise.race([taken, stopped]);
    if (signal.aborted) throw aborted();
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

function aborted(): JobtailError {
  return new JobtailError('aborted', 'the download was stopped');
}
