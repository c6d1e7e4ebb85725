/**
 * All calls to the service pass here: so many at a time, so many a minute, live polls before everything else. Calls
 * that may take long (whole files, jobs that answered slowly or not at all) share half of the places, so that they
 * delay no other job.
 */
import PQueue from 'p-queue';
import { JobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import type { PartRequest, Parts, Remote, Sink, TransferMethod } from './ports.ts';

export interface CallLimits {
  /** Calls at a time. */
  readonly concurrency: number;
  readonly requestsPerMinute: number;
}

/** live: a poll that people wait for. patient: one that may take long, or whose job did before. */
export type Lane = 'live' | 'patient';

const PRIORITY: Record<Lane, number> = { live: 1, patient: 0 };

/** Calls that wait although none runs, for so long beyond what the rate asks for, will wait for ever. */
const STALLED_MS = 60_000;

export class Calls {
  readonly #all: PQueue;
  readonly #patient: PQueue;
  readonly #longestPauseMs: number;
  readonly #monotonic: () => number;
  /** When a call last began or ended, or the first one came to wait. */
  #movedAt = 0;

  constructor({ concurrency, requestsPerMinute }: CallLimits, monotonic = () => performance.now()) {
    // Spread over the minute: a burst at its beginning would leave the rest of it without a poll.
    const intervalMs = Math.max(1_000, 60_000 / requestsPerMinute);
    const intervalCap = Math.max(1, Math.floor((requestsPerMinute * intervalMs) / 60_000));
    this.#all = new PQueue({ concurrency, interval: intervalMs, intervalCap, strict: true });
    this.#patient = new PQueue({ concurrency: Math.max(1, Math.floor(concurrency / 2)) });
    this.#longestPauseMs = 2 * intervalMs + STALLED_MS;
    this.#monotonic = monotonic;
  }

  /** Calls wait, none runs, and the rate is no reason: nothing will come of it any more. */
  get stalled(): boolean {
    const idle = this.#all.size > 0 && this.#all.pending === 0;
    return idle && this.#monotonic() - this.#movedAt > this.#longestPauseMs;
  }

  /** Calls that wait for their turn. */
  get waiting(): number {
    return this.#all.size + this.#patient.size;
  }

  /** Runs one call when it is its turn; rejects with `aborted` if the signal fires before. */
  async run<T>(lane: Lane, signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    if (this.waiting === 0) this.#move();
    const moving = () => {
      this.#move();
      return call().finally(() => this.#move());
    };
    const turn = () => this.#all.add(moving, { priority: PRIORITY[lane], signal });
    try {
      return await (lane === 'live' ? turn() : this.#patient.add(turn, { signal }));
    } catch (error) {
      if (signal.aborted && !(error instanceof JobtailError)) throw new JobtailError('aborted', 'it was stopped');
      throw error;
    }
  }

  #move(): void {
    this.#movedAt = this.#monotonic();
  }
}

/** The service, with every call passed through a lane. */
export class QueuedRemote implements Remote {
  readonly #remote: Remote;
  readonly #calls: Calls;
  readonly #lane: Lane;

  constructor(remote: Remote, calls: Calls, lane: Lane) {
    this.#remote = remote;
    this.#calls = calls;
    this.#lane = lane;
  }

  readParts(jobId: JobId, wanted: readonly PartRequest[], signal: AbortSignal): Promise<Parts> {
    return this.#calls.run(this.#lane, signal, () => this.#remote.readParts(jobId, wanted, signal));
  }

  listChangedFiles(jobId: JobId, signal: AbortSignal): Promise<readonly string[]> {
    return this.#calls.run(this.#lane, signal, () => this.#remote.listChangedFiles(jobId, signal));
  }

  downloadFile(jobId: JobId, path: string, sink: Sink, signal: AbortSignal): Promise<number> {
    return this.#calls.run('patient', signal, () => this.#remote.downloadFile(jobId, path, sink, signal));
  }

  getTransferMethod(jobId: JobId, signal: AbortSignal): Promise<TransferMethod | null> {
    return this.#calls.run(this.#lane, signal, () => this.#remote.getTransferMethod(jobId, signal));
  }

  endTransfer(jobId: JobId, method: TransferMethod, signal: AbortSignal): Promise<void> {
    return this.#calls.run(this.#lane, signal, () => this.#remote.endTransfer(jobId, method, signal));
  }
}
