/** Result files by a direct transfer: whether it is open, and one turn of it. */
import fs from 'node:fs/promises';
import path from 'node:path';
import { asJobtailError, JobtailError } from '../../../errors.ts';
import type { JobId } from '../../../job.ts';
import { LinkedAbort } from '../../../linked-abort.ts';
import type { Clock } from '../../../system/clock.ts';
import type { DiskReserve } from '../../../system/disk-room.ts';
import type { DirectFile, DirectOrder, DirectTransfer, Remote, TransferMethod } from '../../ports.ts';
import type { Leases } from './leases.ts';

export interface DirectOptions {
  readonly leases: Leases;
  /** By the protocol that the service names (docs/interface.md 2.2). */
  readonly transfers: Readonly<Record<'NetworkShare' | 'SftpScp', DirectTransfer>>;
  /** direct: every file. auto: large ones, and many. */
  readonly wanted: 'direct' | 'auto';
  readonly aboveBytes: number;
}

export interface DirectTurn<File extends DirectFile> {
  readonly jobId: JobId;
  readonly files: readonly File[];
  readonly remote: Remote;
  /** `<mirror>/<job>`. */
  readonly jobDirectory: string;
  readonly presentDirectory: string;
  readonly maxFileBytes: number | null;
  readonly bytesPerSecond: number | null;
  readonly reserve: DiskReserve;
  readonly clock: Clock;
  readonly onFiles: DirectOrder<File>['onFiles'];
  readonly onTooLarge: (file: File) => void;
  /** Bytes more, and the way they came. */
  readonly onBytes: (bytes: number, way: string) => void;
  readonly signal: AbortSignal;
}

/** Where files of direct transfers arrive: beside `results/`, so that they only have to be renamed. */
function stagingDirectory(jobDirectory: string): string {
  return path.join(jobDirectory, '.direct');
}

/** Removes it, with what waits in it to be resumed. */
export function clearStaging(jobDirectory: string): Promise<void> {
  return fs.rm(stagingDirectory(jobDirectory), { recursive: true, force: true });
}

/** So many files that are due together are better brought in one go. */
const MANY_FILES = 100;
/** After a failure, the direct way is tried again after so long; twice as long after each further one. */
const FIRST_PAUSE_MS = 5 * 60_000;
const LONGEST_PAUSE_MS = 4 * 60 * 60_000;
/** How often the room on the disk is looked at. */
const LOOK_MS = 1_000;

interface Closed {
  /** By the clock that only goes forward. */
  readonly until: number;
  readonly pauseMs: number;
}

export class DirectResults {
  readonly #options: DirectOptions;
  readonly #closed = new Map<JobId, Closed>();

  constructor(options: DirectOptions) {
    this.#options = options;
  }

  /** Whether a file of so many bytes (null: not known yet) goes directly, one of `many` that are due. */
  takes(bytes: number | null, many: number): boolean {
    const { wanted, aboveBytes } = this.#options;
    return wanted === 'direct' || many >= MANY_FILES || (bytes !== null && bytes > aboveBytes);
  }

  /** The size from which a file that comes by SOAP is stopped and left to the direct way. */
  get aboveBytes(): number {
    return this.#options.aboveBytes;
  }

  /** Whether it is tried: not, for a while, after it failed. */
  isOpen(jobId: JobId, clock: Clock): boolean {
    const closed = this.#closed.get(jobId);
    return closed === undefined || clock.monotonic() >= closed.until;
  }

  /** Brings the files that can be had this way. Rejects if the way is closed; the files handed over before count. */
  async fetch<File extends DirectFile>(turn: DirectTurn<File>): Promise<void> {
    const { jobId, clock } = turn;
    try {
      await this.#fetch(turn);
      this.#closed.delete(jobId);
    } catch (thrown) {
      const error = asJobtailError(thrown);
      if (turn.signal.aborted) throw error;
      const pauseMs = Math.min(LONGEST_PAUSE_MS, (this.#closed.get(jobId)?.pauseMs ?? FIRST_PAUSE_MS / 2) * 2);
      this.#closed.set(jobId, { until: clock.monotonic() + pauseMs, pauseMs });
      throw error;
    }
  }

  forgetJob(jobId: JobId): void {
    this.#closed.delete(jobId);
  }

  /** Gives the method of a job back. */
  async end(jobId: JobId, remote: Remote, signal: AbortSignal): Promise<void> {
    await this.#options.leases.end(jobId, remote, signal);
  }

  async #fetch<File extends DirectFile>(turn: DirectTurn<File>): Promise<void> {
    const { jobId, files, remote, jobDirectory, clock, signal } = turn;
    const { leases } = this.#options;
    await turn.reserve.require(0);
    const lease = await leases.take(jobId, remote, signal);
    if (lease === null) throw noMethod();
    const { method } = lease;
    const transfer = this.#transferOf(method);
    const room = watchRoom(turn);
    let arrived = 0;
    try {
      await transfer.fetch({
        method,
        files,
        directory: stagingDirectory(jobDirectory),
        presentDirectory: turn.presentDirectory,
        maxFileBytes: turn.maxFileBytes,
        bytesPerSecond: turn.bytesPerSecond,
        way: lease.way,
        onFiles: turn.onFiles,
        onTooLarge: turn.onTooLarge,
        onBytes: (bytes) => {
          if (bytes > arrived) turn.onBytes(bytes - arrived, lease.way ?? method.protocol ?? '');
          arrived = Math.max(arrived, bytes);
          room.look(clock.monotonic());
        },
        onWay: (way) => {
          leases.setWay(lease, way);
          turn.onBytes(0, way);
        },
        signal: room.signal,
      });
    } catch (error) {
      throw room.isOut ? turn.reserve.outOfRoom() : error;
    } finally {
      room.dispose();
    }
    if (room.isOut) throw turn.reserve.outOfRoom();
  }

  #transferOf({ protocol }: TransferMethod): DirectTransfer {
    if (protocol === null) throw noMethod();
    return this.#options.transfers[protocol];
  }
}

/** Fires when the disk's reserve begins, or with the signal of the turn. */
function watchRoom({ reserve, signal }: Pick<DirectTurn<DirectFile>, 'reserve' | 'signal'>) {
  const out = new LinkedAbort(signal);
  let lookedAt = Number.NEGATIVE_INFINITY;
  return {
    signal: out.signal,
    get isOut() {
      return out.signal.aborted && !signal.aborted;
    },
    look(nowMs: number) {
      if (nowMs - lookedAt < LOOK_MS) return;
      lookedAt = nowMs;
      reserve.hasRoomFor(0).then(
        (hasRoom) => hasRoom || out.abort(),
        () => out.abort(),
      );
    },
    dispose: () => out.release(),
  };
}

function noMethod(): JobtailError {
  return new JobtailError('not-found', 'the service has no transfer method for this job', {
    hint: 'set results.transfer to soap if it never has one',
  });
}
