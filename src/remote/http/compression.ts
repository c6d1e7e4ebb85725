/** Requests gzip while responses arrive slowly: on a fast connection, it costs more processor time than it saves. */
import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { type ErrorCode, JobtailError } from '../../errors.ts';
import { addressOf, type Target } from './failures.ts';

/** Below this rate, in bytes per second on the wire, gzip is requested. */
export const SLOW_RATE = 4_000_000;
export const MEASURED_BYTES = 256 * 1024;
/** Consecutive slow measurements that switch it on. */
export const MEASUREMENTS = 3;
/** It is requested for so long: compressed responses do not show the rate of others. */
const REQUESTED_MS = 60 * 60 * 1000;

/** Maximum ratio of a response to its compressed bytes. */
const MAX_RATIO = 250;
/** A response up to this size may have any ratio: a short file of equal bytes. */
const MIN_LIMITED_BYTES = 8 * 1024 * 1024;

const CHUNK_BYTES = 64 * 1024;

interface Body extends AsyncIterable<Buffer> {
  destroy(): Promise<void>;
}

export class Compression {
  readonly #nowMs: () => number;
  #isBroken = false;
  #wantedUntilMs = Number.NEGATIVE_INFINITY;
  #slowInARow = 0;
  #arrivedBytes = 0;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  get isWanted(): boolean {
    return this.#nowMs() < this.#wantedUntilMs && !this.#isBroken;
  }

  /** Measures one response: the returned function gets each chunk and how long the agent waited for it. */
  measuring(): (bytes: number, waitedMs: number) => void {
    let [start, ownBytes, ms] = [this.#arrivedBytes, 0, 0];
    return (bytes, waitedMs) => {
      this.#arrivedBytes += bytes;
      ownBytes += bytes;
      ms += waitedMs;
      if (ownBytes < MEASURED_BYTES) return;
      this.#measured(((this.#arrivedBytes - start) * 1000) / ms);
      [start, ownBytes, ms] = [this.#arrivedBytes, 0, 0];
    };
  }

  #measured(rate: number): void {
    if (this.isWanted) return;
    this.#slowInARow = rate < SLOW_RATE ? this.#slowInARow + 1 : 0;
    if (this.#slowInARow >= MEASUREMENTS) this.#wantedUntilMs = this.#nowMs() + REQUESTED_MS;
  }

  /** After a damaged body, or one with too high a ratio, gzip is not requested again. */
  unpacked(body: Body, target: Target, signal: AbortSignal): AsyncIterable<Buffer> {
    const chunks = this.#unpack(body, target, signal);
    const end = async (): Promise<IteratorResult<Buffer, undefined>> => {
      // A generator that was not started frees nothing.
      await body.destroy();
      return await chunks.return(undefined);
    };
    return { [Symbol.asyncIterator]: () => ({ next: () => chunks.next(), return: end }) };
  }

  async *#unpack(body: Body, target: Target, signal: AbortSignal): AsyncGenerator<Buffer, undefined> {
    const gunzip = createGunzip({ chunkSize: CHUNK_BYTES });
    // A failure of the body reaches the reader through `gunzip`.
    pipeline(body, gunzip, () => undefined);
    let bytes = 0;
    try {
      for await (const chunk of gunzip as AsyncIterable<Buffer>) {
        // A completely arrived body no longer checks its signal.
        if (signal.aborted) throw new JobtailError('aborted', 'the call was stopped');
        bytes += chunk.length;
        if (bytes > MIN_LIMITED_BYTES && bytes > MAX_RATIO * gunzip.bytesWritten) {
          const what = `is over ${MAX_RATIO} times as large as its compressed bytes`;
          throw this.#refused('answer-too-large', target, what);
        }
        yield chunk;
      }
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : '';
      // An empty body is empty, even if it is declared as gzip.
      if (code === 'Z_BUF_ERROR' && gunzip.bytesWritten === 0) return;
      throw code.startsWith('Z_') ? this.#refused('malformed', target, 'is damaged gzip') : error;
    } finally {
      gunzip.destroy();
      await body.destroy();
    }
  }

  #refused(code: ErrorCode, target: Target, what: string): JobtailError {
    this.#isBroken = true;
    return new JobtailError(code, `the response of ${addressOf(target)} ${what}`, {
      hint: 'the agent requests it uncompressed from now on; set service.compression to off for this server',
    });
  }
}
