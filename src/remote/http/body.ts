/** The end of a call by abort or time limit, and the body of a response: aborted when it makes no progress. */
import { setMaxListeners } from 'node:events';
import { performance } from 'node:perf_hooks';
import { setImmediate as immediate } from 'node:timers/promises';
import { JobtailError } from '../../errors.ts';
import { LinkedAbort } from '../../linked-abort.ts';
import { countOf } from '../../numbers.ts';
import type { Exchange } from './exchange.ts';
import { describeFailure, type Target, timeoutError } from './failures.ts';

/** The maximum delay of a timer; a longer one fires at once. */
const MAX_DELAY_MS = 2 ** 31 - 1;

/** A signal that combines the caller's signal and the total time; its reason is always a JobtailError. */
export class CallStop extends LinkedAbort {
  constructor(caller: AbortSignal, totalMs: number, target: Target) {
    // One signal may stop many calls; each removes its listener.
    setMaxListeners(0, caller);
    super(caller, () => new JobtailError('aborted', 'the call was stopped'));
    const expired = () => timeoutError(target, `did not respond completely within ${totalMs} ms`);
    if (!caller.aborted && totalMs <= MAX_DELAY_MS) this.within(totalMs, expired);
  }

  stop(reason: JobtailError): void {
    this.release();
    this.abort(reason);
  }
}

/** Less than this within the idle limit is no progress, so a server cannot keep a call open byte by byte. */
const PROGRESS_BYTES = 1024;

interface BodyLimits {
  readonly stop: CallStop;
  readonly idleMs: number;
  readonly target: Target;
  readonly measure?: ((bytes: number, waitedMs: number) => void) | undefined;
  readonly onBroken?: (() => void) | undefined;
}

/** A reader that never has to wait yields after this time. */
const MAX_TURN_MS = 10;

/** Counts only the wait for the server. */
export class LimitedBody implements AsyncIterable<Buffer>, AsyncIterator<Buffer> {
  readonly #exchange: Exchange;
  readonly #limits: BodyLimits;
  #turnMs = performance.now();
  #waitedMs = 0;
  #bytes = 0;
  #over = false;

  constructor(exchange: Exchange, limits: BodyLimits) {
    this.#exchange = exchange;
    this.#limits = limits;
  }

  [Symbol.asyncIterator](): AsyncIterator<Buffer> {
    return this;
  }

  async next(): Promise<IteratorResult<Buffer, undefined>> {
    const { stop, target, onBroken } = this.#limits;
    if (this.#over) return { done: true, value: undefined };
    try {
      stop.signal.throwIfAborted();
      await this.#giveTurn();
      const chunk = await this.#nextWithinLimit();
      // A stop during the last chunk wins: an incomplete body must not look complete.
      stop.signal.throwIfAborted();
      if (chunk !== undefined) return { done: false, value: chunk };
      this.#settle();
      return { done: true, value: undefined };
    } catch (error) {
      const failure = describeFailure(stop.signal.aborted ? stop.signal.reason : error, target);
      if (failure.code === 'interrupted') onBroken?.();
      await this.destroy();
      throw failure;
    }
  }

  async return(): Promise<IteratorResult<Buffer, undefined>> {
    await this.destroy();
    return { done: true, value: undefined };
  }

  async destroy(): Promise<void> {
    this.#settle();
    this.#exchange.stop(new JobtailError('aborted', 'the call was stopped'));
  }

  #settle(): void {
    this.#over = true;
    this.#limits.stop.release();
  }

  async #giveTurn(): Promise<void> {
    if (performance.now() - this.#turnMs < MAX_TURN_MS) return;
    await immediate();
    this.#turnMs = performance.now();
  }

  async #nextWithinLimit(): Promise<Buffer | undefined> {
    const { stop, idleMs, target, measure } = this.#limits;
    const startedMs = performance.now();
    const amount = this.#bytes === 0 ? 'nothing new for' : `only ${countOf(this.#bytes, 'byte')} in`;
    const expired = () => stop.stop(timeoutError(target, `sent ${amount} ${idleMs} ms`));
    const timer = setTimeout(expired, Math.max(0, idleMs - this.#waitedMs));
    try {
      const chunk = await this.#exchange.chunk();
      if (chunk === undefined) return undefined;
      const waitedMs = performance.now() - startedMs;
      measure?.(chunk.length, waitedMs);
      this.#bytes += chunk.length;
      this.#waitedMs += waitedMs;
      if (this.#bytes >= PROGRESS_BYTES) [this.#bytes, this.#waitedMs] = [0, 0];
      return chunk;
    } finally {
      clearTimeout(timer);
    }
  }
}
