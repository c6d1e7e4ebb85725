/** The body of an answer, read at the reader's pace and given up when the server makes no progress. */
import { performance } from 'node:perf_hooks';
import type { Readable } from 'node:stream';
import { type CallStop, timeoutError } from './call-stop.ts';
import { describeFailure, type Target } from './failures.ts';

/** Less than this within the idle limit is no progress: a server that drips byte by byte does not go on for ever. */
const PROGRESS_BYTES = 1024;

export interface BodyLimits {
  readonly stop: CallStop;
  readonly idleMs: number;
  readonly target: Target;
}

/** Only the time spent waiting for the server counts, not the time the reader takes. */
export class LimitedBody implements AsyncIterable<Buffer>, AsyncIterator<Buffer> {
  readonly #stream: Readable;
  readonly #chunks: AsyncIterator<Buffer>;
  readonly #limits: BodyLimits;
  #waitedMs = 0;
  #bytes = 0;
  #over = false;

  constructor(stream: Readable, limits: BodyLimits) {
    this.#stream = stream;
    // Whatever happens is told to the one who reads; an unread body must not end the process.
    stream.on('error', () => undefined);
    this.#chunks = stream[Symbol.asyncIterator]();
    this.#limits = limits;
  }

  [Symbol.asyncIterator](): AsyncIterator<Buffer> {
    return this;
  }

  async next(): Promise<IteratorResult<Buffer, undefined>> {
    const { stop, target } = this.#limits;
    if (this.#over) return { done: true, value: undefined };
    try {
      stop.signal.throwIfAborted();
      const result = await this.#nextWithinLimit();
      // A stop that came while the last chunk was on its way wins: nobody must take the rest for complete.
      stop.signal.throwIfAborted();
      if (result.done !== true) return { done: false, value: result.value };
      this.#end();
      return { done: true, value: undefined };
    } catch (error) {
      const failure = describeFailure(stop.signal.aborted ? stop.signal.reason : error, target);
      await this.destroy();
      throw failure;
    }
  }

  async return(): Promise<IteratorResult<Buffer, undefined>> {
    await this.destroy();
    return { done: true, value: undefined };
  }

  /** Gives the body up and frees the connection. */
  async destroy(): Promise<void> {
    this.#end();
    this.#stream.destroy();
  }

  #end(): void {
    this.#over = true;
    this.#limits.stop.settle();
  }

  async #nextWithinLimit(): Promise<IteratorResult<Buffer>> {
    const { stop, idleMs, target } = this.#limits;
    const startedMs = performance.now();
    const expired = () => stop.stop(timeoutError(target, `sent nothing new for ${idleMs} ms`));
    const timer = setTimeout(expired, Math.max(0, idleMs - this.#waitedMs));
    try {
      const result = await this.#chunks.next();
      this.#waitedMs += performance.now() - startedMs;
      this.#bytes += result.done === true ? 0 : result.value.length;
      if (this.#bytes >= PROGRESS_BYTES) {
        this.#waitedMs = 0;
        this.#bytes = 0;
      }
      return result;
    } finally {
      clearTimeout(timer);
    }
  }
}
