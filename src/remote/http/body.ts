/**
 * What ends one call early, and the body of a response: read at the pace of the reader, and given up when the server
 * makes no progress.
 */
import { setMaxListeners } from 'node:events';
import { performance } from 'node:perf_hooks';
import type { Readable } from 'node:stream';
import { setImmediate as immediate } from 'node:timers/promises';
import { JobtailError } from '../../errors.ts';
import { LinkedAbort } from '../../linked-abort.ts';
import { addressOf, describeFailure, type Target } from './failures.ts';

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

/** Less than this within the idle limit is no progress: a server that drips byte by byte does not go on for ever. */
const PROGRESS_BYTES = 1024;

export interface BodyLimits {
  readonly stop: CallStop;
  readonly idleMs: number;
  readonly target: Target;
  /** Receives the length of each chunk, and how long was waited for it. */
  readonly measure?: ((bytes: number, waitedMs: number) => void) | undefined;
}

/** So many chunks may wait for the reader before no more are taken from the connection. */
const MAX_WAITING = 4;

/** A reader that is never kept waiting lets others have their turn after so long. */
const MAX_TURN_MS = 10;

/**
 * Only the time spent waiting for the server counts, not the time the reader takes. Chunks are handed on as they
 * arrived: the iterator of a stream would copy all that have arrived into one.
 */
export class LimitedBody implements AsyncIterable<Buffer>, AsyncIterator<Buffer> {
  readonly #stream: Readable;
  readonly #limits: BodyLimits;
  readonly #waiting: Buffer[] = [];
  #listens = false;
  /** How the stream ended: `error` in a box, for it may be anything; nothing in it if the body is complete. */
  #end: { readonly error?: unknown } | undefined;
  #wake: () => void = () => undefined;
  #turnMs = performance.now();
  #waitedMs = 0;
  #chunkWaitedMs = 0;
  #bytes = 0;
  #over = false;

  constructor(stream: Readable, limits: BodyLimits) {
    this.#stream = stream;
    this.#limits = limits;
    // The reader gets the error; an unread body must not end the process.
    stream.on('error', (error: unknown) => this.#ended({ error }));
    stream.on('end', () => this.#ended({}));
  }

  [Symbol.asyncIterator](): AsyncIterator<Buffer> {
    return this;
  }

  async next(): Promise<IteratorResult<Buffer, undefined>> {
    const { stop, target } = this.#limits;
    if (this.#over) return { done: true, value: undefined };
    try {
      stop.signal.throwIfAborted();
      await this.#giveTurn();
      const chunk = (this.#end === undefined ? this.#take() : undefined) ?? (await this.#nextWithinLimit());
      // A stop during the last chunk wins: an incomplete body must not look complete.
      stop.signal.throwIfAborted();
      if (chunk !== undefined) return { done: false, value: this.#counted(chunk) };
      this.#settle();
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
    this.#settle();
    this.#stream.destroy();
  }

  #settle(): void {
    this.#over = true;
    this.#waiting.length = 0;
    this.#limits.stop.settle();
  }

  #ended(end: { readonly error?: unknown }): void {
    this.#end ??= end;
    this.#wake();
  }

  async #giveTurn(): Promise<void> {
    if (performance.now() - this.#turnMs < MAX_TURN_MS) return;
    await immediate();
    this.#turnMs = performance.now();
  }

  /** The next chunk, if it has arrived. */
  #take(): Buffer | undefined {
    const chunk = this.#waiting.shift();
    if (this.#waiting.length === 0) this.#flow();
    return chunk;
  }

  #flow(): void {
    const stream = this.#stream;
    if (!this.#listens) {
      this.#listens = true;
      stream.on('data', (chunk: Buffer) => {
        if (this.#over) return;
        if (this.#waiting.push(chunk) >= MAX_WAITING) stream.pause();
        this.#wake();
      });
    }
    if (stream.isPaused()) stream.resume();
  }

  /** Bytes that come are progress: the waiting begins anew. */
  #counted(chunk: Buffer): Buffer {
    this.#limits.measure?.(chunk.length, this.#chunkWaitedMs);
    this.#chunkWaitedMs = 0;
    this.#bytes += chunk.length;
    if (this.#bytes >= PROGRESS_BYTES) {
      this.#waitedMs = 0;
      this.#bytes = 0;
    }
    return chunk;
  }

  /** Waits for the next chunk; undefined at the end of the body. */
  async #nextWithinLimit(): Promise<Buffer | undefined> {
    const { stop, idleMs, target } = this.#limits;
    const startedMs = performance.now();
    const expired = () => stop.stop(timeoutError(target, `sent nothing new for ${idleMs} ms`));
    const timer = setTimeout(expired, Math.max(0, idleMs - this.#waitedMs));
    try {
      while (this.#waiting.length === 0 && this.#end === undefined) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
      this.#chunkWaitedMs = performance.now() - startedMs;
      this.#waitedMs += this.#chunkWaitedMs;
      if (this.#end !== undefined && 'error' in this.#end) throw this.#end.error;
      return this.#take();
    } finally {
      clearTimeout(timer);
    }
  }
}
