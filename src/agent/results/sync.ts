/** One look at a job's results: fetches what is due, by the way that suits it, and puts it in its place. */
import path from 'node:path';
import { asJobtailError, JobtailError } from '../../errors.ts';
import { LinkedAbort } from '../../linked-abort.ts';
import type { LookOptions } from './context.ts';
import { clearStaging } from './download/by-direct.ts';
import { downloadByService } from './download/by-service.ts';
import { Placement } from './place/placement.ts';
import { Targets } from './place/targets.ts';
import { type DueResult, type ProvenLink, TOO_LARGE } from './plan.ts';

/** So many files in a row that fail: it is the service. */
const MOST_IN_A_ROW = 3;

export class Look {
  readonly #options: LookOptions;
  readonly #placement: Placement;
  #failuresInARow = 0;

  constructor(options: LookOptions) {
    this.#options = options;
    this.#placement = new Placement(options);
  }

  get tally(): Placement['tally'] {
    return this.#placement.tally;
  }

  /** Fetches all of them; rejects with what stops the whole look. */
  async fetchAll(due: readonly DueResult[]): Promise<void> {
    const { direct, directory, jobId, clock } = this.#options;
    const isOpen = direct?.isOpen(jobId, clock) === true;
    const first = isOpen ? due.filter(({ row }) => direct.takes(row.bytes, due.length)) : [];
    const left = new Set(due);
    for (const result of await this.#byDirect(first)) left.delete(result);

    // What turns out to be large on its way through SOAP is stopped, and comes directly.
    const canStop = isOpen && first.length < due.length && direct.isOpen(jobId, clock);
    const large = await this.#byService([...left], canStop ? direct.aboveBytes : null);
    const gone = await this.#byDirect(large);
    await this.#byService(
      large.filter((result) => !gone.has(result)),
      null,
    );
    // Nothing waits to be resumed: what did not come directly came by SOAP.
    if (direct !== undefined) await clearStaging(path.dirname(directory));
  }

  /** Puts a link to a mirror in the place of a result. */
  link({ result, live }: ProvenLink): Promise<void> {
    return this.#placement.link(result, live);
  }

  /** The files that the direct way brought or left out for good; the others are left to SOAP. */
  async #byDirect(files: readonly DueResult[]): Promise<Set<DueResult>> {
    if (files.length === 0) return new Set();
    const { direct, jobId, directory, options, progress, pass, onFallback } = this.#options;
    const gone = new Set(files);
    const free = await this.#placement.free(files);
    for (const result of free) gone.delete(result);
    if (free.length === 0) return gone;
    try {
      await direct?.fetch({
        ...this.#options,
        files: free,
        remote: pass.remote,
        jobDirectory: path.dirname(directory),
        presentDirectory: directory,
        maxFileBytes: options.maxFileBytes,
        bytesPerSecond: options.bandwidthLimit ?? null,
        onFiles: async (arrivals) => {
          await this.#placement.settle(arrivals.map(({ file, ...arrived }) => ({ result: file, ...arrived })));
          for (const { file } of arrivals) gone.add(file);
        },
        onTooLarge: (result) => {
          gone.add(result);
          this.#placement.leftOut(result.row, tooLarge(options.maxFileBytes));
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

  /** Fetches by DownloadFileFromCluster, some at a time; those beyond `directAboveBytes` are handed back. */
  async #byService(files: readonly DueResult[], directAboveBytes: number | null): Promise<DueResult[]> {
    const large: DueResult[] = [];
    const queue = files.values();
    const passSignal = this.#options.pass.signal;
    const stop = new LinkedAbort(passSignal);
    const { signal } = stop;
    const work = async () => {
      for (const result of queue) {
        if (signal.aborted) return;
        if ((await this.#byServiceOne(result, directAboveBytes, signal)) === 'for-direct') large.push(result);
      }
    };
    const workers = Array.from({ length: Math.min(this.#options.parallel, files.length) }, () =>
      work().catch((error: unknown) => {
        // The first one that fails for good stops the others; they then end as stopped, and say nothing new.
        if (!signal.aborted) stop.abort(error);
      }),
    );
    await Promise.all(workers);
    stop.release();
    if (passSignal.aborted) throw new JobtailError('aborted', 'it was stopped');
    if (signal.aborted) throw signal.reason;
    return large;
  }

  async #byServiceOne(result: DueResult, directAboveBytes: number | null, signal: AbortSignal): Promise<unknown> {
    const { jobId, mirrorDirectory, calls, ledger, options, pass, progress, reserve, throttle } = this.#options;
    const { row, target } = result;
    try {
      await new Targets(mirrorDirectory, calls).look(target);
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
      if (downloaded === 'too-large') this.#placement.leftOut(row, tooLarge(options.maxFileBytes));
      else if (downloaded === 'no-room') this.#placement.failed(row, reserve.outOfRoom());
      else await this.#placement.settle([{ result, path: downloaded.file, digest: downloaded }]);
    } catch (thrown) {
      const error = asJobtailError(thrown);
      if (signal.aborted || !this.#isOfOneFile(error)) throw error;
      this.#placement.failed(row, error);
    }
    await ledger.keepUp();
    return undefined;
  }

  #isOfOneFile(error: JobtailError): boolean {
    const { ofOneFile } = error.policy;
    if (ofOneFile === 'yes') return true;
    this.#failuresInARow += 1;
    return ofOneFile === 'perhaps' && this.#failuresInARow < MOST_IN_A_ROW;
  }
}

function tooLarge(maxFileBytes: number | null): string {
  return `${TOO_LARGE} (${maxFileBytes} bytes)`;
}
