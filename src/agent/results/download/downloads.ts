/** The downloads of one sync: each due file comes by the transfer that suits it, within the limits, and is placed. */
import fs from 'node:fs/promises';
import { asJobtailError, JobtailError, stopped } from '../../../errors.ts';
import type { JobId } from '../../../job.ts';
import { LinkedAbort } from '../../../linked-abort.ts';
import { inSlices } from '../../../slices.ts';
import type { Throttle } from '../../../system/clock.ts';
import type { DiskReserve } from '../../../system/files.ts';
import type { Remote } from '../../ports/server.ts';
import { isIrregular, isStillNoFile, type Ledger, type Progress, tooLarge } from '../ledger.ts';
import type { Placement } from '../place/place-files.ts';
import type { Arrived } from '../place/temporary-files.ts';
import type { DueResult } from '../plan.ts';
import { clearStaging, type DirectResults, reasonOf, stagingDirectory } from './by-direct.ts';

interface DownloadsOptions {
  readonly jobId: JobId;
  readonly directory: string;
  readonly remote: Remote;
  readonly signal: AbortSignal;
  /** Null: the calls of the service only. */
  readonly direct: DirectResults | null;
  readonly limits: DownloadLimits;
  readonly placement: Placement;
  readonly ledger: Ledger;
  readonly progress: Progress;
  readonly onFallback?: ((jobId: JobId, reason: string) => void) | undefined;
}

/** After so many failed files in a row, the service is the cause; of files that failed before, the rest is left for later. */
const MAX_IN_A_ROW = 3;
/** A file on which the service hung gets this many times the time at the next attempt. */
const PATIENCE = 10;

/** too-large: above `maxFileBytes`. for-direct: above `directAboveBytes`. no-room: the disk's reserve begins. */
type Downloaded = Arrived | 'too-large' | 'for-direct' | 'no-room';

const ROOM_BYTES = 16 * 1024 * 1024;

/** Left to a direct transfer. The value records that it did not bring a file; undefined: the service is asked again. */
type Left = Map<DueResult, ((works: boolean) => void) | undefined>;

interface OneDownload {
  /** Undefined if no direct transfer is open. */
  readonly left: Left | undefined;
  readonly silentMs: number;
  readonly signal: AbortSignal;
}

export class Downloads {
  readonly #options: DownloadsOptions;
  #failuresInARow = 0;
  #isDirectThrough = false;
  /** Whether the service hangs, or fails file after file, while a direct transfer is open. */
  #isServiceOut = false;
  /** Whether a file stays away because the reserve of the disk begins. */
  isOutOfRoom = false;

  constructor(options: DownloadsOptions) {
    this.#options = options;
  }

  /** Fetches all; rejects with an error that stops the whole sync. */
  async fetchAll(due: readonly DueResult[]): Promise<void> {
    const { direct, directory, jobId, remote, ledger, progress } = this.#options;
    const isRefused = (name: string) => remote.reasonAgainst?.(name) !== undefined;
    const wanted = due.filter(({ row }) => direct?.takes(row, due.length, isRefused(row.name)));
    const closed = direct?.reasonAgainst(jobId);
    if (closed !== undefined && wanted.length > 0) progress.fallback(closed);
    const isOpen = direct !== null && closed === undefined;
    const first = isOpen ? wanted : [];
    const gone = await this.#byDirect(first);

    // A download that turns out to be large is stopped, and transferred directly.
    const canStop = isOpen && first.length < due.length && direct.reasonAgainst(jobId) === undefined;
    const rest = due.filter((result) => !gone.has(result));
    const usual: DueResult[] = [];
    for (const result of rest.filter(({ row }) => row.hangs === 0)) {
      const reason = this.#isDirectThrough ? remote.reasonAgainst?.(result.row.name) : undefined;
      if (reason === undefined) usual.push(result);
      else ledger.notSent(result.row, reason);
    }
    // A file that always fails must neither hold up others nor end each sync: first what did not fail before.
    const failedSince = ({ row }: DueResult) => (row.state === 'failed' ? row.dueAt : 0);
    usual.sort((a, b) => failedSince(a) - failedSince(b));
    const left: Left = new Map();
    await this.#byService(usual, canStop ? left : undefined);
    const leftGone = await this.#byDirect([...left.keys()]);
    const again: DueResult[] = [];
    for (const [result, onMissed] of left) {
      if (leftGone.has(result)) continue;
      if (onMissed === undefined) again.push(result);
      else onMissed(direct?.reasonAgainst(jobId) === undefined);
    }
    await this.#byService(again, undefined);
    for (const result of rest) if (result.row.hangs > 0) await this.#fetchHanging(result);
    if (direct !== null && !(await this.#canResume())) await clearStaging(directory);
  }

  /** Whether a result that did not come yet may have a part among what came directly. */
  async #canResume(): Promise<boolean> {
    const { directory, ledger, remote } = this.#options;
    const staging = await fs.stat(stagingDirectory(directory)).catch(() => undefined);
    if (staging === undefined) return false;
    await ledger.flush();
    for await (const { state, name } of inSlices(ledger.rows())) {
      if (state === 'failed' || (state === 'refused' && remote.reasonAgainst?.(name) !== undefined)) return true;
    }
    return false;
  }

  /** Returns the files that the direct transfer brought or excluded; the others are left to the service. */
  async #byDirect(files: readonly DueResult[]): Promise<Set<DueResult>> {
    const { jobId, remote, signal, direct, limits, placement, ledger, progress, onFallback } = this.#options;
    const placeable = await placement.placeable(files);
    const gone = new Set(files);
    for (const result of placeable.files) gone.delete(result);
    if (direct === null || placeable.files.length === 0) return gone;
    try {
      await direct.fetch({
        jobId,
        remote,
        signal,
        ...limits,
        ...placeable,
        directory: stagingDirectory(this.#options.directory),
        presentDirectory: this.#options.directory,
        onFiles: async (arrivals) => {
          await placement.place(arrivals.map(({ file, ...arrived }) => ({ result: file, ...arrived })));
          for (const { file } of arrivals) gone.add(file);
        },
        onTooLarge: (result) => {
          gone.add(result);
          this.#leaveOut(result);
        },
        onIrregular: (result, kind) => {
          gone.add(result);
          ledger.irregular(result.row, kind);
        },
        onBytes: (bytes, way) => progress.arrived(bytes, way),
      });
      progress.fallback(null);
      this.#isDirectThrough = true;
    } catch (thrown) {
      const error = asJobtailError(thrown);
      if (signal.aborted || error.policy.endsPoll) throw error;
      const reason = reasonOf(error);
      progress.fallback(reason);
      onFallback?.(jobId, reason);
    }
    return gone;
  }

  /** Fetches a file on which the service hung before: alone, after all others, when it is due. Other calls need not wait for it (hanging-calls.ts). */
  async #fetchHanging(result: DueResult): Promise<void> {
    const { ledger, limits, signal } = this.#options;
    const { row } = result;
    const patienceMs = limits.silentMs * PATIENCE;
    if (row.state === 'left-out') ledger.stillLeftOut(row);
    else if (row.state !== 'failed') ledger.notSent(row, row.reason ?? 'the service failed to send it before');
    else if (row.dueAt > ledger.startedAt) ledger.stillFailed();
    else {
      // Saved before: a stop during a long request does not repeat it.
      await ledger.saveRequested(row);
      try {
        await this.#fetchOne(result, { left: undefined, silentMs: patienceMs, signal });
      } catch (thrown) {
        // Something else is the cause: the next sync requests it.
        if (!signal.aborted) ledger.add(row);
        throw thrown;
      }
    }
  }

  /** Fetches by DownloadFileFromCluster, some at a time; without `left`, all that it sends. */
  async #byService(files: readonly DueResult[], left: Left | undefined): Promise<void> {
    const queue = files.values();
    const { signal: caller, limits, ledger } = this.#options;
    const stop = new LinkedAbort(caller);
    const { signal } = stop;
    const { silentMs } = limits;
    const work = async () => {
      for (const result of queue) {
        if (signal.aborted) return;
        const isLater = result.row.state === 'failed' && this.#failuresInARow >= MAX_IN_A_ROW;
        if (left !== undefined && (this.#isServiceOut || isLater)) left.set(result, undefined);
        else if (isLater) ledger.stillFailed();
        else await this.#fetchOne(result, { left, silentMs, signal });
      }
    };
    const workers = Array.from({ length: limits.parallel }, () =>
      // The first final failure stops the others; they end without an error of their own.
      work().catch((error: unknown) => stop.abort(error)),
    );
    await Promise.all(workers);
    stop.release();
    if (caller.aborted) throw stopped();
    if (signal.aborted) throw signal.reason;
  }

  /** Fetches one file by DownloadFileFromCluster, or leaves it to a direct transfer. */
  async #fetchOne(result: DueResult, how: OneDownload): Promise<void> {
    const { limits, placement, ledger, remote } = this.#options;
    const { row } = result;
    const { left, silentMs, signal } = how;
    const { service } = limits;
    let isSilent = true;
    try {
      if ((await placement.placeable([result])).files.length === 0) return;
      const downloaded = await this.#download(result, how, () => {
        isSilent = false;
        service.isAnswering = true;
      });
      this.#failuresInARow = 0;
      if (downloaded === 'for-direct') left?.set(result, undefined);
      else if (downloaded === 'too-large') this.#leaveOut(result);
      else if (downloaded === 'no-room') {
        this.isOutOfRoom = true;
        ledger.postponed(row, 'failed', limits.reserve.outOfRoom().message);
      } else await placement.place([{ result, ...downloaded, isSent: true }]);
    } catch (thrown) {
      const error = asJobtailError(thrown);
      if (signal.aborted) throw error;
      // A silent file is the cause only if the service responded before it.
      const hasHung = error.code === 'timeout' && isSilent;
      const isBehind = hasHung && !service.isAnswering;
      if (hasHung) service.isAnswering = false;
      // The first refusal of such a name shows that the service hands out none.
      const refusal = remote.reasonAgainst?.(row.name);
      const isRefused = refusal !== undefined;
      // SSH has shown it; not every release reports that.
      const isStillIrregular = isIrregular(row) && error.policy.isRefusal && isStillNoFile(row, error.inPlace);
      if (left !== undefined && !isStillIrregular && (isRefused || mayComeDirectly(error))) {
        // No other file is requested behind one on which the service hangs.
        this.#isServiceOut ||= hasHung || !this.#isOfOneFile(error, row);
        const next = result.notSent();
        const onMissed = (works: boolean) => {
          if (hasHung) ledger.hung(row, silentMs);
          // SSH may never bring it (a link, for example), so the service is asked again.
          else if (works) ledger.notSent(row, error.message);
          else ledger.postponed(row, 'failed', error.message);
        };
        left.set(next, isBehind ? undefined : onMissed);
        return;
      }
      if (isBehind) ledger.waitedBehind(row);
      if (isBehind || (!hasHung && !this.#isOfOneFile(error, row))) throw error;
      if (error.inPlace !== undefined) ledger.noFile(row, error.inPlace);
      else if (isStillIrregular) ledger.stillLeftOut(row);
      else if (hasHung) ledger.hung(row, silentMs);
      else if (isRefused && this.#isDirectThrough) ledger.notSent(row, error.message);
      else if (isRefused) ledger.postponed(row, 'refused', refusal);
      else ledger.failed(row, error, error.message);
    }
    await ledger.keepUp();
  }

  async #download(result: DueResult, how: OneDownload, onBytes: () => void): Promise<Downloaded> {
    const { row } = result;
    const { remote, jobId, limits, placement, progress, direct } = this.#options;
    const { maxFileBytes, reserve, throttle } = limits;
    const { left, silentMs, signal } = how;
    const directAboveBytes = left === undefined || direct === null ? null : direct.aboveBytes;
    if (!(await reserve.hasRoomFor(0))) return 'no-room';
    let stopped: Exclude<Downloaded, Arrived> | undefined;
    let bytes = 0;
    const stop = (why: typeof stopped) => {
      stopped = why;
      throw new JobtailError('aborted', 'the download is not wanted');
    };
    const take = async (length: number) => {
      const before = bytes;
      bytes += length;
      if (maxFileBytes !== null && bytes > maxFileBytes) stop('too-large');
      if (directAboveBytes !== null && bytes > directAboveBytes) stop('for-direct');
      const isTime = Math.floor(bytes / ROOM_BYTES) > Math.floor(before / ROOM_BYTES);
      if (isTime && !(await reserve.hasRoomFor(ROOM_BYTES))) stop('no-room');
    };
    try {
      return await placement.receive(result, (write) => {
        const sink = async (chunk: Buffer) => {
          await take(chunk.length);
          await write(chunk);
          onBytes();
          progress.arrived(chunk.length, 'service');
          progress.file(row.name, bytes);
          await throttle.pay(chunk.length, signal);
        };
        return remote.downloadFile(jobId, row.name, sink, signal, silentMs);
      });
    } catch (error) {
      if (stopped !== undefined) return stopped;
      throw error;
    } finally {
      progress.file(row.name, undefined);
    }
  }

  #leaveOut({ row }: DueResult): void {
    const { ledger, limits } = this.#options;
    ledger.postponed(row, 'left-out', tooLarge(limits.maxFileBytes));
  }

  #isOfOneFile({ policy }: JobtailError, { state }: DueResult['row']): boolean {
    const { ofOneFile } = policy;
    if (ofOneFile === 'yes') return true;
    this.#failuresInARow += 1;
    return ofOneFile === 'perhaps' && (state === 'failed' || this.#failuresInARow < MAX_IN_A_ROW);
  }
}

/** Whether the service failed to send a file that may be there. */
function mayComeDirectly({ inPlace, policy }: JobtailError): boolean {
  const isPerhapsThere = inPlace === undefined || inPlace === 'unclear';
  return policy.ofOneFile === 'perhaps' || (policy.ofOneFile === 'yes' && policy.isDivisible && isPerhapsThere);
}

export interface DownloadLimits {
  readonly maxFileBytes: number | null;
  /** For direct transfers, which limit themselves; the throttle limits all others. */
  readonly bytesPerSecond: number | null;
  readonly throttle: Throttle;
  readonly reserve: DiskReserve;
  readonly parallel: number;
  /** Maximum time until the first byte of a file. */
  readonly silentMs: number;
  /** Whether the service responds. While it hangs on one file, it delays all calls of the same user. */
  readonly service: { isAnswering: boolean };
}
