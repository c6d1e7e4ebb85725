/**
 * The result files of a job. Each listing is complete and has neither size nor time (docs/dev/servers.md 4.1), so a ledger
 * records what was downloaded: a file is downloaded when it is first listed, and again at intervals that grow while it
 * does not change.
 */
import path from 'node:path';
import { eachAlone } from '../../each-alone.ts';
import { asJobtailError, JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import { resultPath, resultsParts } from '../../safe-names.ts';
import { inSlices } from '../../slices.ts';
import type { ResultSyncRow } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import { type Clock, sleep, Throttle } from '../../system/clock.ts';
import { makeDirectories } from '../../system/directories.ts';
import { DiskReserve, type FileCalls, fileCalls } from '../../system/files.ts';
import { ALONE, type Ownership } from '../ownership.ts';
import type { Patterns } from '../patterns.ts';
import type { Listing, Remote } from '../ports/server.ts';
import type { ClusterList, Irregular } from '../ports/transfer.ts';
import { clearStaging, type DirectResults } from './download/by-direct.ts';
import { type DownloadLimits, Downloads } from './download/downloads.ts';
import { Ledger, Progress, Stamps } from './ledger.ts';
import { ignoresCase, judgeOf, type Refusals } from './listing.ts';
import { LiveLinks } from './place/live-links.ts';
import { type DownloadKind, Placement } from './place/place-files.ts';
import { clearPartials } from './place/temporary-files.ts';
import { DueResult, distinct, planSync } from './plan.ts';

interface ResultRules extends Patterns {
  readonly intervalMs: number;
  readonly maxFileBytes: number | null;
  readonly bandwidthLimit: number | null;
}

export interface ResultEvents {
  readonly onFetched?: (jobId: JobId, name: string, bytes: number, kind: DownloadKind) => void;
  /** Called once per sync if further names are refused. */
  readonly onRefused?: (jobId: JobId, refusals: Refusals) => void;
  /** Called once per sync if files that should be transferred directly come by the service. */
  readonly onFallback?: (jobId: JobId, reason: string) => void;
}

export interface ResultsOptions extends ResultEvents {
  readonly store: Store;
  readonly mirrorDirectory: string;
  readonly ownership?: Ownership;
  /** Whether that is a network file system, where any call may hang. */
  readonly onNetwork: boolean;
  readonly rules: ResultRules;
  readonly clock: Clock;
  readonly minFreeBytes: number;
  readonly parallel: number;
  /** Maximum time until the first byte of a file. */
  readonly silentMs: number;
  /** Null: the calls of the service only. */
  readonly direct: DirectResults | null;
  readonly onProgress?: ((progress: ResultSyncRow) => void) | undefined;
}

interface SyncOptions {
  readonly remote: Remote;
  /** Whether every file is fetched, due or not, unless its date proves that it is unchanged. */
  readonly isFinal: boolean;
  /** Of these, only what is in flux, or new; the progress of the sync before it stays. */
  readonly onlyInFlux?: boolean;
  readonly onListed?: (names: readonly string[]) => Promise<void>;
  /** What the service listed just now; it is asked if omitted. */
  readonly listed?: Listing;
  readonly signal: AbortSignal;
}

interface BringOptions {
  readonly remote: Remote;
  /** `arrived`: the path of what the cluster has now. */
  readonly onFile: (file: DueResult, arrived: string) => Promise<void>;
  readonly onIrregular: (file: DueResult, kind: Irregular) => void;
  readonly signal: AbortSignal;
}

export interface ResultsEnd {
  readonly listed: number;
  /** Downloaded files, and those of them that are new or changed. */
  readonly fetched: number;
  readonly changed: number;
  /** Files that are due and were not fetched. */
  readonly failed: number;
  /** Unsafe names, and files that the configuration excludes. */
  readonly refused: number;
  readonly leftOut: number;
  readonly bytes: number;
  readonly tookMs: number;
}

const NOTHING = { listed: 0, fetched: 0, changed: 0, failed: 0, refused: 0, leftOut: 0, bytes: 0 };

/** In a complete pass, an empty list is requested again after this time. */
const EMPTY_MS = 5_000;

/** The directory of the results of a job; part of the documented layout. */
export function resultsDirectory(mirrorDirectory: string, jobId: JobId): string {
  return path.join(mirrorDirectory, ...resultsParts(jobId));
}

export class Results {
  readonly #options: ResultsOptions;
  readonly #calls: FileCalls;
  readonly #limits: DownloadLimits;
  readonly #cleared = new Set<JobId>();
  /** When the last sync of each job began. */
  readonly #syncedAt = new Map<JobId, number>();
  /** Jobs whose last list was empty, although results are known. */
  readonly #empty = new Set<JobId>();
  /** Whether the file system of the mirror has no symbolic links. */
  #areLinksRefused = false;

  constructor(options: ResultsOptions) {
    this.#options = options;
    const { mirrorDirectory, onNetwork, minFreeBytes, parallel, silentMs, rules, clock } = options;
    const { maxFileBytes, bandwidthLimit } = rules;
    this.#calls = fileCalls(onNetwork);
    const reserve = new DiskReserve(mirrorDirectory, minFreeBytes, this.#calls);
    const throttle = new Throttle(bandwidthLimit, clock);
    const service = { isAnswering: true };
    this.#limits = { maxFileBytes, bytesPerSecond: bandwidthLimit, parallel, silentMs, service, reserve, throttle };
  }

  /** Lists the results of a job and fetches the due ones. The failure of one file does not stop the others. */
  async sync(jobId: JobId, options: SyncOptions): Promise<ResultsEnd> {
    const { remote, isFinal, onlyInFlux = false, onListed, signal } = options;
    const { store, mirrorDirectory, rules, clock, direct, onRefused } = this.#options;
    const calls = this.#calls;
    const startedAt = clock.now();
    const directory = resultsDirectory(mirrorDirectory, jobId);
    await this.#clear(jobId, directory);
    const listed = await this.#list(jobId, options);
    if (listed === undefined) return { ...NOTHING, tookMs: clock.now() - startedAt };
    await onListed?.(listed);

    if (listed.length > 0) await makeDirectories(calls, mirrorDirectory, directory);
    const stamps = new Stamps(listed.stamps, clock);
    // A name that the service always refuses may come directly.
    const reasonAgainst = direct === null ? (name: string) => remote.reasonAgainst?.(name) : undefined;
    const judge = judgeOf(rules, await ignoresCase(calls, directory), reasonAgainst);
    const left = await distinct(listed);
    const liveFiles = store.liveFiles.ofJob(jobId);
    const linked = store.results.links(jobId).filter(({ name }) => left.has(name));
    const areRefused = this.#areLinksRefused;
    const { capabilities } = store;
    const links = new LiveLinks({ mirrorDirectory, calls, liveFiles, linked, capabilities, areRefused });
    // The stored reason stays until a direct transfer succeeds again.
    const fallback = direct === null ? null : (store.resultSyncs.get(jobId)?.fallback ?? null);
    const progress = new Progress({ ...this.#options, jobId, fallback });
    const ledger = new Ledger({ ...this.#options, jobId, intervalMs: rules.intervalMs, progress, stamps, signal });
    // What was due then was checked then.
    const checkedAt = isFinal ? undefined : this.#syncedAt.get(jobId);
    const stands = async (result: DueResult) =>
      (checkedAt !== undefined && result.row.dueAt <= checkedAt) || (await this.#stands(result));
    const isLinkGone = async ({ target }: DueResult) =>
      checkedAt === undefined && (await calls.lstat(target)) === undefined;
    const plan = await planSync({
      left,
      ledger,
      links,
      judge,
      stamps,
      stands,
      isLinkGone,
      directory,
      isFinal,
      onlyInFlux,
      maxFileBytes: rules.maxFileBytes,
      signal,
    });
    this.#syncedAt.set(jobId, startedAt);
    if (plan.refusals.fresh.length > 0) onRefused?.(jobId, plan.refusals);

    const due = [...plan.due];
    const sizes = plan.due.map(({ row }) => row.bytes);
    if (!onlyInFlux) progress.begin(plan.links.length + plan.due.length, sizes);
    const { ownership = ALONE } = this.#options;
    const requireRight = () => ownership.requireLease(jobId);
    const placement = new Placement({ ...this.#options, jobId, calls, links, ledger, requireRight, signal });
    const downloads = new Downloads({
      ...this.#options,
      jobId,
      directory,
      remote,
      signal,
      limits: this.#limits,
      placement,
      ledger,
      progress,
    });
    // What came is recorded also after a failure.
    const steps = [
      async () => {
        for (const result of plan.inTheWay) await placement.makeWay(result);
        for (const { result, live } of plan.links) if (!(await placement.link(result, live))) due.push(result);
        await stamps.keepApart(
          due.map(({ row }) => row),
          signal,
        );
        await downloads.fetchAll(due);
        this.#areLinksRefused ||= links.areRefused;
      },
      () => ledger.flush(),
      () => progress.end(),
    ];
    const [failed] = await eachAlone(steps, (step) => step());
    if (failed !== undefined) throw failed.error;
    if (isFinal && downloads.isOutOfRoom) throw this.#limits.reserve.outOfRoom();
    const { refused, leftOut } = store.results.counts(jobId);
    const { bytes, tally } = progress;
    return { listed: listed.length, ...tally, refused, leftOut, bytes, tookMs: clock.now() - startedAt };
  }

  /**
   * Brings once more what comes directly of the fetched results: what is here is the base, so only changes travel. Each
   * file is removed when it was passed on. Returns why no more comes, if the transfer fails.
   */
  async bringAgain(
    jobId: JobId,
    { remote, signal, onFile, onIrregular }: BringOptions,
  ): Promise<JobtailError | undefined> {
    const { store, mirrorDirectory, direct } = this.#options;
    const presentDirectory = resultsDirectory(mirrorDirectory, jobId);
    const { synced } = store.results.counts(jobId);
    const files: DueResult[] = [];
    for await (const row of inSlices(store.results.ofJob(jobId))) {
      const isFetched = row.fetchedAt !== null && row.live === null && 'parts' in resultPath(row.name);
      if (isFetched && direct?.takes(row, synced, remote.reasonAgainst?.(row.name) !== undefined))
        files.push(new DueResult(row, presentDirectory));
    }
    if (direct === null || files.length === 0) return undefined;
    const closed = direct.reasonAgainst(jobId);
    if (closed !== undefined) return new JobtailError('unreachable', closed);
    const largestPresentBytes = files.reduce((max, { row }) => Math.max(max, row.bytes ?? 0), 0);
    const turn = { of: 'again', jobId, remote, signal, files, presentDirectory, largestPresentBytes } as const;
    const { reserve, bytesPerSecond } = this.#limits;
    const failure = await direct
      .bring({ ...turn, reserve, bytesPerSecond, onFile, onIrregular })
      .then(() => undefined, asJobtailError);
    if (failure !== undefined && (signal.aborted || failure.policy.endsPoll)) throw failure;
    return failure;
  }

  /** What the cluster lists of a job. Rejects if it cannot be asked. */
  async listCluster(jobId: JobId, remote: Remote, signal: AbortSignal): Promise<ClusterList> {
    const { direct } = this.#options;
    if (direct !== null) return await direct.list(jobId, remote, signal);
    throw new JobtailError('config', 'the cluster cannot be asked for its files: no SSH and no share is in use', {
      hint: 'install OpenSSH and rsync, and set results.transfer to auto or direct',
    });
  }

  /** Releases the transfer grants of an ended job; a failure is retried later. */
  async endTransfer(jobId: JobId, { remote, signal }: Pick<SyncOptions, 'remote' | 'signal'>): Promise<void> {
    const { direct, mirrorDirectory, store } = this.#options;
    await direct?.end(jobId, remote, signal).catch(() => {});
    const directory = resultsDirectory(mirrorDirectory, jobId);
    await clearStaging(directory, 'live').catch(() => {});
    // Of a result that never came.
    const state = store.jobs.get(jobId)?.state;
    const isOver = state === 'settled' || state === 'ended';
    if (direct !== null && isOver) await clearStaging(directory).catch(() => {});
  }

  forgetJob(jobId: JobId): void {
    this.#cleared.delete(jobId);
    this.#syncedAt.delete(jobId);
    this.#empty.delete(jobId);
    this.#options.direct?.forgetJob(jobId);
  }

  /**
   * An empty list is believed if the one before it was empty, too: the file system of a cluster may be away for a
   * moment, and then each file would count as removed. Undefined: not yet believed.
   */
  async #list(jobId: JobId, { remote, isFinal, listed: known, signal }: SyncOptions): Promise<Listing | undefined> {
    const { store, clock } = this.#options;
    let listed = known ?? (await remote.listChangedFiles(jobId, signal));
    this.#limits.service.isAnswering = true;
    const isOdd = listed.length === 0 && !this.#empty.has(jobId) && store.results.counts(jobId).listed > 0;
    if (isOdd && !isFinal) {
      this.#empty.add(jobId);
      return undefined;
    }
    if (isOdd) {
      await sleep(clock, EMPTY_MS, signal);
      listed = await remote.listChangedFiles(jobId, signal);
    }
    if (listed.length > 0) this.#empty.delete(jobId);
    return listed;
  }

  /** Another directory may be configured by now, or another process removed the file. */
  async #stands({ row, target }: DueResult): Promise<boolean> {
    const stat = await this.#calls.lstat(target);
    return stat?.isFile() === true && stat.size === row.bytes;
  }

  /** Removes the leftovers of a kill, once. */
  async #clear(jobId: JobId, directory: string): Promise<void> {
    if (this.#cleared.has(jobId)) return;
    await clearPartials(directory);
    // Without direct transfers, nothing resumes a partial one.
    if (this.#options.direct === null) await clearStaging(directory);
    this.#cleared.add(jobId);
  }
}
