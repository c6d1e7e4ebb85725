/** Result files by a direct transfer: whether it is open, and one turn of it. */
import fs from 'node:fs/promises';
import path from 'node:path';
import { BackOff } from '../../../back-off.ts';
import { JobtailError } from '../../../errors.ts';
import type { JobId } from '../../../job.ts';
import { LinkedAbort } from '../../../linked-abort.ts';
import type { Clock } from '../../../system/clock.ts';
import type { DirectOrder, DirectTransfer, Remote, Reserve } from '../../ports.ts';
import type { DueResult } from '../plan.ts';
import type { Leases } from './leases.ts';

export interface DirectOptions {
  readonly leases: Leases;
  readonly clock: Clock;
  /** From 0 up to 1, for jitter. */
  readonly random: () => number;
  /** By the protocol that the service names (docs/interface.md 2.2). */
  readonly transfers: Readonly<Record<'NetworkShare' | 'SftpScp', DirectTransfer>>;
  /** direct: every file. auto: large ones, and many. */
  readonly wanted: 'direct' | 'auto';
  readonly aboveBytes: number;
}

type OfOrder = 'files' | 'presentDirectory' | 'maxFileBytes' | 'bytesPerSecond' | 'onFiles' | 'onTooLarge' | 'signal';

/** Files of one job that are to be brought; `presentDirectory` is its `results/`. */
export interface DirectTurn extends Pick<DirectOrder<DueResult>, OfOrder> {
  readonly jobId: JobId;
  readonly remote: Remote;
  readonly reserve: Reserve;
  /** Bytes more, and the way they came. */
  readonly onBytes: (bytes: number, way: string) => void;
}

/** Where files of direct transfers arrive: beside `results/`, so that they only have to be renamed. */
function stagingDirectory(resultsDirectory: string): string {
  return path.join(path.dirname(resultsDirectory), '.direct');
}

/** Removes it, with what waits in it to be resumed. */
export function clearStaging(resultsDirectory: string): Promise<void> {
  return fs.rm(stagingDirectory(resultsDirectory), { recursive: true, force: true });
}

/** So many files that are due together are better brought in one go. */
const MANY_FILES = 100;
/** After a failure, the direct way is tried again after so long; twice as long after each further one. */
const FIRST_PAUSE_MS = 5 * 60_000;
const LONGEST_PAUSE_MS = 4 * 60 * 60_000;
/** How often it is asked whether there is room on the disk. */
const ROOM_MS = 1_000;

export class DirectResults {
  readonly #options: DirectOptions;
  /** Of the jobs for which it failed. */
  readonly #backOffs = new Map<JobId, BackOff>();

  constructor(options: DirectOptions) {
    this.#options = options;
  }

  /** Whether a file of so many bytes (null: not known yet) goes directly, one of `many` that are due. */
  takes(bytes: number | null, many: number): boolean {
    const { wanted, aboveBytes } = this.#options;
    return wanted === 'direct' || many >= MANY_FILES || (bytes !== null && bytes > aboveBytes);
  }

  /** The size from which a file that comes by the service is stopped and left to the direct way. */
  get aboveBytes(): number {
    return this.#options.aboveBytes;
  }

  /** Whether it is tried: not, for a while, after it failed. */
  isOpen(jobId: JobId): boolean {
    return (this.#backOffs.get(jobId)?.remainingMs ?? 0) === 0;
  }

  /** Brings the files that can be had this way. Rejects if the way is closed; the files handed over before count. */
  async fetch(turn: DirectTurn): Promise<void> {
    const { jobId, signal } = turn;
    try {
      await this.#fetch(turn);
      this.#backOffs.delete(jobId);
    } catch (error) {
      if (!signal.aborted) this.#backOffOf(jobId).lengthen();
      throw error;
    }
  }

  forgetJob(jobId: JobId): void {
    this.#backOffs.delete(jobId);
  }

  /** Gives the method of a job back. */
  async end(jobId: JobId, remote: Remote, signal: AbortSignal): Promise<void> {
    await this.#options.leases.end(jobId, remote, signal);
  }

  #backOffOf(jobId: JobId): BackOff {
    const { clock, random } = this.#options;
    const pauses = { firstMs: FIRST_PAUSE_MS, maxMs: LONGEST_PAUSE_MS, nowMs: () => clock.monotonic(), random };
    const backOff = this.#backOffs.get(jobId) ?? new BackOff(pauses);
    this.#backOffs.set(jobId, backOff);
    return backOff;
  }

  async #fetch({ jobId, remote, reserve, onBytes, signal, ...order }: DirectTurn): Promise<void> {
    const { leases, transfers } = this.#options;
    await reserve.require(0);
    const lease = await leases.take(jobId, remote, signal);
    const { protocol } = lease?.method ?? { protocol: null };
    if (lease === null || protocol === null) throw noMethod();
    const stop = new LinkedAbort(signal);
    const keepRoom = this.#roomKeeper(reserve, stop);
    let arrived = 0;
    try {
      await transfers[protocol].fetch({
        ...order,
        method: lease.method,
        directory: stagingDirectory(order.presentDirectory),
        way: lease.way,
        onBytes: (bytes) => {
          if (bytes > arrived) onBytes(bytes - arrived, lease.way ?? protocol);
          arrived = Math.max(arrived, bytes);
          keepRoom();
        },
        onWay: (way) => {
          leases.setWay(lease, way);
          onBytes(0, way);
        },
        signal: stop.signal,
      });
    } catch (error) {
      throw stop.signal.aborted && !signal.aborted ? stop.signal.reason : error;
    } finally {
      stop.release();
    }
  }

  /** What stops a transfer, called again and again, when the disk's reserve begins. */
  #roomKeeper(reserve: Reserve, stop: AbortController): () => void {
    const { clock } = this.#options;
    let askedAt = Number.NEGATIVE_INFINITY;
    return () => {
      if (clock.monotonic() - askedAt < ROOM_MS) return;
      askedAt = clock.monotonic();
      reserve.require(0).catch((error: unknown) => stop.abort(error));
    };
  }
}

function noMethod(): JobtailError {
  return new JobtailError('not-found', 'the service has no transfer method for this job', {
    hint: 'set results.transfer to soap if it never has one',
  });
}
