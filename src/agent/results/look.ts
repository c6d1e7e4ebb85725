/** One look at a job's results: fetches what is due, by the way that suits it, and puts it in its place. */
import path from 'node:path';
import { asJobtailError, type ErrorCode, JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import type { LiveFileRow, ResultRow } from '../../store/rows.ts';
import type { Clock } from '../ports.ts';
import type { Ledger } from './ledger.ts';
import { afterFetch, afterLink, postponed } from './ledger.ts';
import type { DiskReserve, Throttle } from './limits.ts';
import type { LiveLinks } from './live-links.ts';
import { printable } from './names.ts';
import { type DueResult, TOO_LARGE } from './plan.ts';
import type { Progress } from './progress.ts';
import { type Arrived, arrivedFile, discard, lookAt, type Present, place, placeLink } from './result-file.ts';
import type { ResultsContext, ResultsPass } from './results.ts';
import { downloadByService } from './service-download.ts';

export interface LookOptions extends ResultsContext {
  readonly clock: Clock;
  readonly parallel: number;
  readonly jobId: JobId;
  /** `results/` of the job. */
  readonly directory: string;
  readonly pass: ResultsPass;
  readonly links: LiveLinks;
  readonly ledger: Ledger;
  readonly progress: Progress;
  readonly reserve: DiskReserve;
  readonly throttle: Throttle;
}

/** Failures of one file, whatever the next one does. */
const OF_ONE_FILE = new Set<ErrorCode>([
  'not-found',
  'fault',
  'malformed',
  'unexpected-answer',
  'answer-too-large',
  'local-io',
  'permission',
  'usage',
]);
/** Failures that may be of one file or of the service: it is the service if several files in a row meet one. */
const OF_ONE_FILE_PERHAPS = new Set<ErrorCode>(['interrupted', 'timeout', 'http-status', 'unavailable', 'internal']);
const MOST_IN_A_ROW = 3;

/** A link that the agent itself made: to a mirror beside `results/`. */
const OWN_LINK = /^(?:\.\.\/)+live\/-?[0-9]+\/(?:stdout|stderr|log|progress)\.log$/;

export class Look {
  readonly #options: LookOptions;
  readonly #tally = { fetched: 0, changed: 0, failed: 0 };
  #failuresInARow = 0;

  constructor(options: LookOptions) {
    this.#options = options;
  }

  get tally(): { readonly fetched: number; readonly changed: number; readonly failed: number } {
    return this.#tally;
  }

  /** Fetches all of them; rejects with what stops the whole look. */
  async fetchAll(due: readonly DueResult[]): Promise<void> {
    const { direct, jobId, now } = this.#options;
    const isOpen = direct?.isOpen(jobId, now()) === true;
    const first = isOpen ? due.filter(({ row }) => direct.takes(row.bytes, due.length)) : [];
    const left = new Set(due);
    for (const result of await this.#byDirect(first)) left.delete(result);

    // What turns out to be large on its way through SOAP is stopped, and comes directly.
    const canStop = isOpen && first.length < due.length && direct.isOpen(jobId, now());
    const large = await this.#byService([...left], canStop ? direct.aboveBytes : null);
    const gone = await this.#byDirect(large);
    await this.#byService(
      large.filter((result) => !gone.has(result)),
      null,
    );
  }

  /** Puts a link to a mirror in the place of a result. */
  async link({ row, target }: DueResult, live: LiveFileRow): Promise<void> {
    const { mirrorDirectory, links, ledger, now } = this.#options;
    try {
      requireOwn(await lookAt(mirrorDirectory, target), target);
      await placeLink(links.textOf(live, target), target);
      links.link(row.name, live);
      await ledger.save(afterLink(row, live, now()), target);
    } catch (thrown) {
      await this.#failed(row, asJobtailError(thrown));
    }
  }

  /** The files that the direct way brought or left out for good; the others are left to SOAP. */
  async #byDirect(files: readonly DueResult[]): Promise<Set<DueResult>> {
    const gone = new Set<DueResult>();
    if (files.length === 0) return gone;
    const { direct, jobId, directory, options, progress, pass, onFallback } = this.#options;
    const targets = await this.#freeTargets(files, gone);
    try {
      await direct?.fetch({
        ...this.#options,
        files: targets,
        remote: pass.remote,
        jobDirectory: path.dirname(directory),
        presentDirectory: directory,
        maxFileBytes: options.maxFileBytes,
        bytesPerSecond: options.bandwidthLimit ?? null,
        onFile: async (result, arrived) => {
          gone.add(result);
          await this.#settle(result, arrivedFile(arrived));
        },
        onTooLarge: (result) => {
          gone.add(result);
          this.#leaveOut(result.row, tooLarge(options.maxFileBytes));
        },
        onBytes: (bytes, way) => progress.arrived(bytes, way),
        signal: pass.signal,
      });
    } catch (thrown) {
      const error = asJobtailError(thrown);
      if (pass.signal.aborted || error.code === 'store') throw error;
      const reason = `${error.message}${error.hint === undefined ? '' : ` (${error.hint})`}`;
      progress.fallback(reason);
      onFallback?.(jobId, reason);
    }
    return gone;
  }

  /** Those of which the target can be written: the others fail here, before anything is fetched. */
  async #freeTargets(files: readonly DueResult[], gone: Set<DueResult>): Promise<DueResult[]> {
    const free: DueResult[] = [];
    for (const result of files) {
      try {
        requireOwn(await lookAt(this.#options.mirrorDirectory, result.target), result.target);
        free.push(result);
      } catch (thrown) {
        gone.add(result);
        await this.#failed(result.row, asJobtailError(thrown));
      }
    }
    return free;
  }

  /** Fetches by DownloadFileFromCluster, some at a time; those beyond `directAboveBytes` are handed back. */
  async #byService(files: readonly DueResult[], directAboveBytes: number | null): Promise<DueResult[]> {
    const large: DueResult[] = [];
    const queue = files.values();
    const stop = new AbortController();
    const signal = AbortSignal.any([this.#options.pass.signal, stop.signal]);
    const work = async () => {
      for (const result of queue) {
        if (signal.aborted) return;
        if ((await this.#byServiceOne(result, directAboveBytes, signal)) === 'for-direct') large.push(result);
      }
    };
    const workers = Array.from({ length: Math.min(this.#options.parallel, files.length) }, () =>
      work().catch((error: unknown) => {
        // The first one that fails for good stops the others; they then end as stopped, and say nothing new.
        if (!stop.signal.aborted) stop.abort(error);
      }),
    );
    await Promise.all(workers);
    if (stop.signal.aborted) throw stop.signal.reason;
    if (signal.aborted) throw new JobtailError('aborted', 'it was stopped');
    return large;
  }

  async #byServiceOne(result: DueResult, directAboveBytes: number | null, signal: AbortSignal): Promise<unknown> {
    const { jobId, mirrorDirectory, options, pass, progress, reserve, throttle } = this.#options;
    const { row, target } = result;
    try {
      requireOwn(await lookAt(mirrorDirectory, target), target);
      const downloaded = await downloadByService({
        ...{ jobId, reserve, throttle, directAboveBytes, signal },
        remote: pass.remote,
        name: row.name,
        directory: path.dirname(target),
        maxFileBytes: options.maxFileBytes,
        onBytes: (bytes) => progress.arrived(bytes, 'soap'),
      });
      this.#failuresInARow = 0;
      if (downloaded === 'for-direct') return downloaded;
      if (downloaded === 'too-large') this.#leaveOut(row, tooLarge(options.maxFileBytes));
      else if (downloaded === 'no-room') this.#leaveOut(row, 'less than mirror.minFreeBytes would stay free');
      else await this.#settle(result, Promise.resolve(downloaded));
    } catch (thrown) {
      const error = asJobtailError(thrown);
      if (signal.aborted || !this.#isOfOneFile(error)) throw error;
      await this.#failed(row, error);
    }
    return undefined;
  }

  /** A file arrived: it is a live file, or the same as before, or it takes its place. */
  async #settle(result: DueResult, arriving: Promise<Arrived>): Promise<void> {
    const { jobId, mirrorDirectory, links, ledger, options, now, progress, onFetched } = this.#options;
    const { row, parts, target } = result;
    let arrived: Arrived | undefined;
    try {
      arrived = await arriving;
      const live = await links.match(arrived, row, parts);
      if (live !== undefined) {
        await discard(arrived);
        await this.link(result, live);
        progress.done();
        return;
      }
      const present = await lookAt(mirrorDirectory, target);
      requireOwn(present, target);
      const changed = await place(arrived, target, present);
      onFetched?.(jobId, row.name, arrived.bytes, changed);
      this.#tally.fetched += 1;
      this.#tally.changed += changed ? 1 : 0;
      progress.done();
      await ledger.save(afterFetch(row, arrived, options.intervalMs, now()), changed ? target : undefined);
    } catch (thrown) {
      if (arrived !== undefined) await discard(arrived);
      const error = asJobtailError(thrown);
      if (!OF_ONE_FILE.has(error.code)) throw error;
      await this.#failed(row, error);
    }
  }

  async #failed(row: ResultRow, error: JobtailError): Promise<void> {
    const { ledger, now, progress } = this.#options;
    this.#tally.failed += 1;
    progress.done();
    await ledger.save(postponed(row, 'failed', printable(error.message), now()));
  }

  #leaveOut(row: ResultRow, reason: string): void {
    const { ledger, now, progress } = this.#options;
    progress.done();
    ledger.add(postponed(row, 'left-out', reason, now()));
  }

  #isOfOneFile({ code }: JobtailError): boolean {
    if (OF_ONE_FILE.has(code)) return true;
    this.#failuresInARow += 1;
    return OF_ONE_FILE_PERHAPS.has(code) && this.#failuresInARow < MOST_IN_A_ROW;
  }
}

function tooLarge(maxFileBytes: number | null): string {
  return `${TOO_LARGE} (${maxFileBytes} bytes)`;
}

/** Refuses a link that the agent did not make: it is not followed, and not replaced. */
function requireOwn(present: Present, target: string): void {
  if (present === undefined || 'bytes' in present || OWN_LINK.test(present.link)) return;
  throw new JobtailError('local-io', `${target} is a link, and is not followed or replaced`, {
    hint: `move ${target} out of the way`,
  });
}
