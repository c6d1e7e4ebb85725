/** Results by direct transfer: whether it is available, and one run of it. */
import fs from 'node:fs/promises';
import path from 'node:path';
import { BackOff } from '../../../back-off.ts';
import { asJobtailError, JobtailError, KeyRefused } from '../../../errors.ts';
import { InTurn } from '../../../in-turn.ts';
import type { JobId } from '../../../job.ts';
import { LinkedAbort } from '../../../linked-abort.ts';
import type { ResultRow } from '../../../store/rows.ts';
import type { Clock } from '../../../system/clock.ts';
import type { Reserve } from '../../ports/host.ts';
import type { Remote } from '../../ports/server.ts';
import type { ClusterList, DirectArrival, DirectFile, DirectFiles, DirectTransfer } from '../../ports/transfer.ts';
import type { Leases } from './leases.ts';

interface DirectOptions {
  readonly leases: Leases;
  readonly clock: Clock;
  /** In [0, 1), for jitter. */
  readonly random: () => number;
  /** By the protocol that the service names (docs/dev/soap.md 2.2). */
  readonly transfers: Readonly<Record<'NetworkShare' | 'SftpScp', DirectTransfer>>;
  /** direct: every file. auto: see `takes`. */
  readonly wanted: 'direct' | 'auto';
  readonly aboveBytes: number;
}

/** The files to transfer; `presentDirectory` is `results/` of the job. */
interface DirectTurn<File extends DirectFile> extends DirectFiles<File> {
  readonly jobId: JobId;
  readonly remote: Remote;
  readonly reserve: Reserve;
  readonly onBytes: (bytes: number, way: string) => void;
}

/** `again`: results for a comparison. */
const STAGING = { results: '.direct', live: '.direct-live', again: '.direct-again' } as const;

type BringTurn<File extends DirectFile> = Pick<
  DirectTurn<File>,
  'jobId' | 'remote' | 'reserve' | 'files' | 'presentDirectory' | 'largestPresentBytes' | 'signal'
> &
  Partial<Pick<DirectTurn<File>, 'bytesPerSecond' | 'onIrregular'>> & {
    readonly of: keyof typeof STAGING;
    readonly onFile: (file: File, arrived: string) => Promise<void>;
  };

/** Where direct transfers write: beside `results/`, so that files only have to be renamed. */
export function stagingDirectory(resultsDirectory: string, of: keyof typeof STAGING = 'results'): string {
  return path.join(path.dirname(resultsDirectory), STAGING[of]);
}

export function clearStaging(resultsDirectory: string, of?: keyof typeof STAGING): Promise<void> {
  return fs.rm(stagingDirectory(resultsDirectory, of), { recursive: true, force: true });
}

/** From so many due files on, one direct transfer is faster than single downloads. */
const MANY_FILES = 100;
/** Some services grant six keys for the whole life of a job: with auto, the last one is left to other programs. */
const MAX_KEYS = 5;
/** Pause after a failure; doubles with each further one. */
const FIRST_PAUSE_MS = 5 * 60_000;
const MAX_PAUSE_MS = 4 * 60 * 60_000;
const ROOM_MS = 1_000;
/** What `status` and `check` show of a transfer, by its protocol. */
const WAYS = { NetworkShare: 'share', SftpScp: 'rsync' } as const;

interface HostAttempt {
  host: string | null;
  isReached: boolean;
}

/** What a host does wrong before it shows a file: its host key changed, it refuses keys, has no rsync, or stands still. */
const OF_HOSTS: ReadonlySet<string> = new Set(['unexpected-answer', 'interrupted']);

interface Closed {
  readonly backOff: BackOff;
  readonly reason: string;
}

export class DirectResults {
  readonly #options: DirectOptions;
  readonly #jobs = new Map<JobId, Closed>();
  /** Transfers of copies, by the directory that they use. */
  readonly #bringing = new InTurn<string>();
  /** Hosts that failed before they showed a file, for all jobs: the others do not wait for the same timeout. */
  readonly #hosts = new Map<string, Closed>();
  /** Hosts that worked last: a job without a known host may have one of them. */
  readonly #working = new Set<string | null>();

  constructor(options: DirectOptions) {
    this.#options = options;
  }

  /**
   * Whether a due file is transferred directly, one of `many`. With auto: large files; files that the service refuses
   * by name, or hung on; new files, if there is a key (the service reads a file whole before it sends any of it); all,
   * if they are many.
   */
  takes({ jobId, bytes, hangs }: ResultRow, many: number, isRefused: boolean): boolean {
    const { wanted, aboveBytes, leases } = this.#options;
    if (wanted === 'direct' || many >= MANY_FILES || isRefused || hangs > 0) return true;
    if (bytes !== null) return bytes > aboveBytes;
    return (leases.inHand(jobId)?.way ?? null) !== null;
  }

  /** The size from which a download is stopped and left to the direct transfer. */
  get aboveBytes(): number {
    return this.#options.aboveBytes;
  }

  /** Why direct transfer is not tried now; undefined if it is. */
  reasonAgainst(jobId: JobId): string | undefined {
    const host = this.#options.leases.hostOf(jobId);
    const closed = [this.#jobs.get(jobId), host === null ? this.#anyHost() : this.#hosts.get(host)];
    return closed.find((one) => one !== undefined && one.backOff.remainingMs > 0)?.reason;
  }

  /** Transfers the files that this method can. Rejects if it fails as a whole; files passed on before count. */
  async fetch<File extends DirectFile>(turn: DirectTurn<File>): Promise<void> {
    const { jobId, signal } = turn;
    const attempt: HostAttempt = { host: null, isReached: false };
    try {
      await this.#options.leases.during(jobId, () => this.#fetch(turn, attempt));
      this.#jobs.delete(jobId);
    } catch (thrown) {
      const error = asJobtailError(thrown);
      // A full disk here is no failure of the transfer.
      if (!signal.aborted && error.code !== 'disk-full') this.#failed(jobId, attempt, error);
      throw error;
    }
  }

  #failed(jobId: JobId, { host, isReached }: HostAttempt, error: JobtailError): void {
    if (error instanceof KeyRefused) this.#options.leases.refused(jobId);
    const isOfHost = OF_HOSTS.has(error.code) && !isReached;
    if (host !== null && (isOfHost || error.code === 'unreachable')) {
      this.#working.delete(host);
      this.#close(this.#hosts, host, error);
    }
    // An unreachable host alone decides when a job without another failure is tried again.
    if (host === null || error.code !== 'unreachable') this.#close(this.#jobs, jobId, error);
  }

  /** Transfers copies into a directory of their own: each is passed on, then removed. Takes the same options as `fetch`. */
  async bring<File extends DirectFile>({ of, onFile, presentDirectory, ...turn }: BringTurn<File>): Promise<void> {
    const directory = stagingDirectory(presentDirectory, of);
    const onFiles = async (arrivals: readonly DirectArrival<File>[]) => {
      for (const { file, path: arrived } of arrivals) await onFile(file, arrived).finally(() => fs.rm(arrived));
    };
    const nothing = { maxFileBytes: null, bytesPerSecond: null, onTooLarge() {}, onIrregular() {}, onBytes() {} };
    await this.#bringing.run(directory, turn.signal, async () => {
      const clear = () => clearStaging(presentDirectory, of);
      await this.fetch({ ...nothing, ...turn, directory, presentDirectory, onFiles }).catch(async (thrown: unknown) => {
        // The next poll resumes a live file; a verification may never be repeated.
        if (of === 'again') await clear().catch(() => {});
        throw thrown;
      });
      await clear();
    });
  }

  /** What the cluster lists of a job, with the key of its transfers. */
  async list(jobId: JobId, remote: Remote, signal: AbortSignal): Promise<ClusterList> {
    const { leases, transfers } = this.#options;
    return await leases.during(jobId, async () => {
      const { lease, protocol } = await this.#takeLease(jobId, remote, signal);
      return await transfers[protocol].list({ method: lease.method, signal }).catch((error: unknown) => {
        if (error instanceof KeyRefused) leases.refused(jobId);
        throw error;
      });
    });
  }

  forgetJob(jobId: JobId): void {
    this.#jobs.delete(jobId);
  }

  async end(jobId: JobId, remote: Remote, signal: AbortSignal): Promise<void> {
    await this.#options.leases.end(jobId, remote, signal);
  }

  /** The state that counts for a job with an unknown host: a key for an unreachable host would be wasted. */
  #anyHost(): Closed | undefined {
    const hosts = [...this.#hosts.values()];
    return this.#working.size > 0 || hosts.some(({ backOff }) => backOff.remainingMs === 0) ? undefined : hosts[0];
  }

  #close<Key>(all: Map<Key, Closed>, key: Key, error: JobtailError): void {
    const { clock, random } = this.#options;
    const pauses = { firstMs: FIRST_PAUSE_MS, maxMs: MAX_PAUSE_MS, nowMs: () => clock.monotonic(), random };
    const backOff = all.get(key)?.backOff ?? new BackOff(pauses);
    backOff.lengthen();
    all.set(key, { backOff, reason: reasonOf(error) });
  }

  async #takeLease(jobId: JobId, remote: Remote, signal: AbortSignal) {
    const { leases, wanted } = this.#options;
    const hasKeys = wanted === 'direct' || leases.inHand(jobId) !== undefined || leases.countKeys(jobId) < MAX_KEYS;
    if (!hasKeys)
      throw new JobtailError('not-found', `the agent has used ${MAX_KEYS} temporary keys of this job`, {
        hint: 'many services lend six keys for a job; results.transfer: direct uses all that the service lends',
      });
    const lease = await leases.take(jobId, remote, signal);
    const protocol = lease?.method.protocol ?? null;
    if (lease === null || protocol === null)
      throw new JobtailError('not-found', 'the service has no transfer method for this job', {
        hint: wanted === 'auto' ? undefined : 'set results.transfer to auto if it never has one',
      });
    return { lease, protocol };
  }

  async #fetch<File extends DirectFile>(turn: DirectTurn<File>, attempt: HostAttempt): Promise<void> {
    const { jobId, remote, reserve, onBytes, signal, ...request } = turn;
    const { leases, transfers } = this.#options;
    await reserve.require(0);
    const { lease, protocol } = await this.#takeLease(jobId, remote, signal);
    const host = lease.method.serverHostname;
    // A share does not depend on that host.
    attempt.host = protocol === 'SftpScp' ? host : null;
    const way = WAYS[protocol];
    const stop = new LinkedAbort(signal);
    const keepRoom = this.#roomKeeper(reserve, stop);
    const reached = () => {
      attempt.isReached = true;
      this.#working.add(host);
      if (host !== null) this.#hosts.delete(host);
    };
    let arrived = 0;
    try {
      await transfers[protocol].fetch({
        ...request,
        method: lease.method,
        onBytes: (bytes) => {
          if (bytes > arrived) {
            reached();
            onBytes(bytes - arrived, way);
          }
          arrived = Math.max(arrived, bytes);
          keepRoom();
        },
        onReached: () => {
          reached();
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

  /** A callback that stops the transfer when the disk's reserve is reached. */
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

export function reasonOf({ message, hint }: JobtailError): string {
  return hint === undefined ? message : `${message} (${hint})`;
}
