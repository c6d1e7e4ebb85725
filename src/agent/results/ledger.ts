/** The ledger of one sync: rows, saved in groups after their directories are flushed; dates; progress. */
import path from 'node:path';
import type { JobtailError, NoFile } from '../../errors.ts';
import { type JobId, keyText } from '../../job.ts';
import { printable } from '../../printable.ts';
import { inSlices, slicesOf } from '../../slices.ts';
import type { NamesWithoutRow } from '../../store/results.ts';
import type { LiveFileRow, ResultName, ResultRow, ResultStamp, ResultSyncRow } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import { type Clock, DAY_MS, sleep } from '../../system/clock.ts';
import { flushAll } from '../../system/directories.ts';
import type { FileDigest } from '../../system/files.ts';
import type { Irregular } from '../ports/transfer.ts';

/** Maximum rows of one transaction; so many waiting rows are saved at once. */
const MANY_ROWS = 500;
const MAX_WAIT_MS = 1_000;
/** Maximum interval between two fetches of an unchanged file while its job is followed. */
export const MAX_INTERVAL_MS = 60 * 60_000;

interface LedgerOptions {
  readonly store: Store;
  readonly jobId: JobId;
  readonly clock: Clock;
  readonly onNetwork: boolean;
  /** Minimum interval between two fetches of a file. */
  readonly intervalMs: number;
  readonly progress: Pick<Progress, 'done'>;
  readonly stamps: Stamps;
  readonly signal: AbortSignal;
}

const silence = (ms: number) =>
  `the service sent no data for ${Math.round(ms / 1000)} s: the file may be a named pipe or very large`;

export class Ledger {
  readonly startedAt: number;
  readonly #options: LedgerOptions;
  readonly #rows = new Map<string, ResultRow>();
  #forgotten: ResultName[] = [];
  #directories = new Set<string>();
  #oldestAt = 0;
  #flushing: Promise<void> = Promise.resolve();

  constructor(options: LedgerOptions) {
    this.#options = options;
    this.startedAt = options.clock.now();
  }

  rows(): Iterable<ResultRow> {
    return this.#options.store.results.ofJob(this.#options.jobId);
  }

  saved(name: string): ResultRow | undefined {
    return this.#options.store.results.get(this.#options.jobId, name);
  }

  fresh(name: string): ResultRow {
    const { jobId, intervalMs } = this.#options;
    const nothing = { reason: null, bytes: null, sha256: null, live: null, fetchedAt: null, hangs: 0, ...NO_STAMP };
    return { jobId, name, state: 'listed', ...nothing, listedAt: this.startedAt, dueAt: this.startedAt, intervalMs };
  }

  /** Records a row, to be saved with others; `target`: the path that was written, if any. */
  add(row: ResultRow, target?: string): void {
    this.#begin();
    this.#rows.set(row.name, row);
    if (target !== undefined) this.#directories.add(path.dirname(target));
  }

  /**
   * Records a downloaded file; `target`: the path that was written, if any. `row.hangs`: what the service failed to
   * send before, and SSH brought, is not requested from the service again. The interval doubles if the file is
   * unchanged, or changed again; it is reset if the file changed after an unchanged fetch. So a file that changes all
   * the time is not fetched all the time.
   */
  fetched(row: ResultRow, { bytes, sha256 }: FileDigest, target?: string): void {
    const now = this.#options.clock.now();
    const same = row.sha256 === sha256;
    const stamped = this.#options.stamps.fetched(row.name);
    const intervalMs = same || row.state === 'in-flux' ? longer(row.intervalMs) : this.#options.intervalMs;
    const state = same || row.sha256 === null ? 'synced' : 'in-flux';
    const due = { intervalMs, dueAt: now + intervalMs };
    this.#options.progress.done(target === undefined ? 'same' : 'changed');
    this.add({ ...row, ...due, ...stamped, state, reason: null, live: null, bytes, sha256, fetchedAt: now }, target);
  }

  linked(row: ResultRow, live: LiveFileRow, target: string): void {
    const nothing = { reason: null, bytes: null, sha256: null, hangs: 0, ...NO_STAMP };
    const fetchedAt = this.#options.clock.now();
    this.#options.progress.done('linked');
    this.add({ ...row, ...nothing, state: 'linked', live: keyText(live), fetchedAt }, target);
  }

  postponed(row: ResultRow, state: 'failed' | 'refused' | 'left-out', reason: string): void {
    this.#postpone({ ...row, state, hangs: 0 }, reason);
  }

  /** Records a failure of one file. What the file system here can never hold is tried once a day. */
  failed(row: ResultRow, { cause, hint }: JobtailError, reason: string): void {
    const { code = '', syscall = '' } = (cause ?? {}) as NodeJS.ErrnoException;
    const rarely = (state: 'failed' | 'refused', why: string) =>
      this.#postpone({ ...row, state, hangs: 0 }, `${why} (${syscall} ${code}); tried once a day`, DAY_MS);
    if (NO_NAME.test(code) && OF_NAMES.test(syscall)) rarely('refused', DISK_REFUSES);
    else if (code === 'EFBIG') rarely('failed', `it is too large for this file system or its limit: ${hint}`);
    else this.postponed(row, 'failed', reason);
  }

  /**
   * Records that the service sent no byte for this time. It never finishes a named pipe, and reads a large file
   * completely before the first byte. Until then it answers no other call, so from the second time on the file is
   * requested once a day.
   */
  hung(row: ResultRow, silentMs: number): void {
    const isFirst = row.hangs === 0;
    const again = isFirst ? 'with a longer timeout' : 'once a day';
    const reason = `${silence(silentMs)}; requested again ${again}`;
    this.#postpone({ ...row, state: 'failed', hangs: row.hangs + 1 }, reason, isFirst ? undefined : DAY_MS);
  }

  /** Records that a file maybe only waited behind one on which the service hangs: it is requested next alone, with patience. */
  waitedBehind(row: ResultRow): void {
    this.add({ ...row, hangs: row.hangs + 1, state: 'failed', reason: BEHIND, dueAt: this.#options.clock.now() });
  }

  /** Saves that a file on which the service may hang for long is requested. */
  async saveRequested(row: ResultRow): Promise<void> {
    this.add({ ...row, hangs: row.hangs + 1, intervalMs: DAY_MS, dueAt: this.#options.clock.now() + DAY_MS });
    await this.flush();
  }

  /** Records that neither the service nor a direct transfer brought a file. */
  notSent(row: ResultRow, reason: string): void {
    const isUnknown = row.name.includes('\uFFFD');
    const why = reason.replace(/(?:; requested again |; only a direct transfer |, and a direct transfer ).*$/u, '');
    if (isUnknown) this.#postpone({ ...row, state: 'refused' }, UNKNOWN_NAME);
    else this.#postpone({ ...row, state: 'failed' }, `${why}, and a direct transfer did not bring it`);
  }

  /** Records what is no file. The service is not asked again for what it hangs on; a link may lead to a file later. */
  irregular(row: ResultRow, kind: Irregular): void {
    const hangs = isPath(kind) ? row.hangs : Math.max(1, row.hangs);
    this.#postpone({ ...row, state: 'left-out', hangs }, `${IRREGULAR}${kind}`);
  }

  /**
   * Records a refusal that reports what is there. A file that was removed since it was listed is refused in the words of
   * a link that leads nowhere, so these words count if the next listing still has the name. Only SSH shows a directory.
   */
  noFile(requested: ResultRow, inPlace: NoFile): void {
    // The service responded: it did not hang.
    const row = { ...requested, hangs: 0 };
    if (inPlace === 'unreadable') this.#postpone({ ...row, state: 'refused' }, UNREADABLE);
    else if (inPlace === 'unclear' && isStillNoFile(row, inPlace)) this.stillLeftOut(row);
    else if (inPlace === 'unclear') this.postponed(row, 'failed', UNCLEAR);
    else if (isIrregular(row) || row.reason === GONE) this.irregular(row, 'a link to a missing file');
    else {
      this.#options.progress.done('left-out');
      const state = row.fetchedAt === null ? 'listed' : 'in-flux';
      this.add({ ...row, state, reason: GONE, dueAt: this.#options.clock.now() });
    }
  }

  stillLeftOut(row: ResultRow): void {
    this.#postpone({ ...row, state: 'left-out' }, row.reason ?? '');
  }

  #postpone(
    row: ResultRow & { readonly state: 'failed' | 'refused' | 'left-out' },
    reason: string,
    afterMs?: number,
  ): void {
    const intervalMs = afterMs ?? longer(row.intervalMs);
    this.#options.progress.done(row.state === 'failed' ? 'failed' : 'left-out');
    this.add({ ...row, reason: printable(reason), intervalMs, dueAt: this.#options.clock.now() + intervalMs });
  }

  stillFailed(): void {
    this.#options.progress.done('failed');
  }

  forget(name: string): void {
    this.#begin();
    this.#rows.delete(name);
    this.#forgotten.push({ jobId: this.#options.jobId, name });
  }

  setWithoutRow(withoutRow: NamesWithoutRow): void {
    this.#options.store.results.setWithoutRow(this.#options.jobId, withoutRow);
  }

  /** Saves the rows if they are many or wait for long. */
  async keepUp(): Promise<void> {
    const waiting = this.#rows.size + this.#forgotten.length;
    if (waiting === 0) return;
    if (waiting >= MANY_ROWS || this.#options.clock.now() - this.#oldestAt >= MAX_WAIT_MS) await this.flush();
  }

  flush(): Promise<void> {
    const flush = async () => {
      const [rows, forgotten, directories] = [[...this.#rows.values()], this.#forgotten, this.#directories];
      this.#rows.clear();
      this.#forgotten = [];
      this.#directories = new Set();
      const { store, onNetwork, signal } = this.#options;
      await flushAll(directories, onNetwork, signal);
      for await (const some of inSlices(slicesOf(forgotten, MANY_ROWS))) store.results.forgetAll(some);
      for await (const some of inSlices(slicesOf(rows, MANY_ROWS))) store.results.saveAll(some);
    };
    // What a failed one did not save is fetched again; it keeps nothing else from being saved.
    this.#flushing = this.#flushing.then(flush, flush);
    return this.#flushing;
  }

  #begin(): void {
    if (this.#rows.size + this.#forgotten.length === 0) this.#oldestAt = this.#options.clock.now();
  }
}

/** What FAT, SMB and eCryptfs answer to a name; of other calls, EINVAL means something else. */
const NO_NAME = /^(EINVAL|ENAMETOOLONG|EILSEQ)$/;
const OF_NAMES = /^(lstat|open|mkdir|rename|symlink)$/;

const IRREGULAR = 'it is ';
const BEHIND = 'the service sent no data: it hung on another file, or on this one';
const GONE = 'no file was there when it was requested: requested again after the next listing';
const DISK_REFUSES = 'the disk of this machine refuses its name';
const UNREADABLE = 'the account on the cluster has no right to read it';
const UNCLEAR =
  'the service refuses it like a link to a directory, or a file that the disk of the cluster fails to read';
/** The service lists U+FFFD in place of the bytes: no request finds the file. */
const UNKNOWN_NAME = 'its name is not UTF-8: rename it on the cluster';

export const tooLarge = (maxFileBytes: number | null) => `larger than results.maxFileBytes (${maxFileBytes} bytes)`;

/** Whether a row is of a pipe, a device, a directory or a link that leads to no file: there is no content to keep. */
export const isIrregular = ({ state, reason }: ResultRow) =>
  state === 'left-out' && reason?.startsWith(IRREGULAR) === true;

/** Whether a refusal leaves an irregular row as it is; some releases do not report what is there. */
export function isStillNoFile(row: ResultRow, inPlace: NoFile | undefined): boolean {
  const isDirectory = isIrregular(row) && row.reason?.endsWith(' directory') === true;
  return inPlace === undefined || inPlace === 'nothing' || (inPlace === 'unclear' && isDirectory);
}

/** Whether the service may be asked again, because it only refuses it: by its path, there may be a file later. */
const isPath = (kind: string) => kind.startsWith('a link') || kind === 'a directory';

/** Whether a fetch of the file was tried and refused, by the cluster or by the disk here; other names are never tried. */
export const isTried = ({ state, reason }: ResultRow) =>
  state === 'refused' && [UNREADABLE, UNKNOWN_NAME, DISK_REFUSES].some((tried) => reason?.startsWith(tried));

const longer = (intervalMs: number) => Math.min(MAX_INTERVAL_MS, intervalMs * 2);

export const NO_STAMP: ResultStamp = { stamp: null, stampProven: false };

/** Minimum delay between a listing and a download, so that the listed date covers the content. */
const MIN_APART_MS = 2_000;

/**
 * The modification dates of one listing, if it has them (docs/dev/rest.md 3.3). A file whose date is the same before and
 * after a download is not downloaded again. Dates have whole seconds, so a download begins two seconds after its
 * listing: a later change has another date. The date is saved with the content, and its proof is withdrawn before the
 * next download: after a kill, no date belongs to other content.
 */
export class Stamps {
  readonly #listed: ReadonlyMap<string, string>;
  readonly #clock: Clock;
  readonly #listedAt: number;
  #areApart = false;

  constructor(listed: ReadonlyMap<string, string> | undefined, clock: Clock) {
    this.#listed = listed ?? new Map();
    this.#clock = clock;
    this.#listedAt = clock.monotonic();
  }

  /** Whether a download would bring the same content again. */
  spares({ name, state, stamp, stampProven }: ResultRow): boolean {
    const isWhole = state === 'synced' || state === 'in-flux';
    return isWhole && stampProven && stamp !== null && stamp === this.#listed.get(name);
  }

  /** Waits until the dates of these files can prove a download. */
  async keepApart(rows: readonly ResultRow[], signal: AbortSignal): Promise<void> {
    if (!rows.some(({ name }) => this.#listed.has(name))) return;
    const waitMs = this.#listedAt + MIN_APART_MS - this.#clock.monotonic();
    if (waitMs > 0) await sleep(this.#clock, waitMs, signal);
    this.#areApart = true;
  }

  fetched(name: string): ResultStamp {
    const stamp = this.#listed.get(name) ?? null;
    return { stamp, stampProven: stamp !== null && this.#areApart };
  }
}

interface ProgressOptions {
  readonly store: Store;
  readonly jobId: JobId;
  readonly clock: Clock;
  readonly fallback: string | null;
  readonly onProgress?: ((progress: ResultSyncRow) => void) | undefined;
}

type ResultOutcome = 'changed' | 'same' | 'linked' | 'failed' | 'left-out';

const SAVED_EVERY_MS = 1_000;

export class Progress {
  readonly tally = { fetched: 0, changed: 0, failed: 0 };
  readonly #options: ProgressOptions;
  #row: ResultSyncRow;
  #savedAt = Number.NEGATIVE_INFINITY;

  constructor(options: ProgressOptions) {
    this.#options = options;
    const { jobId, clock, fallback } = options;
    const now = clock.now();
    const nothing = { wanted: 0, wantedBytes: null, done: 0, bytes: 0, way: null, arriving: [] };
    this.#row = { jobId, startedAt: now, updatedAt: now, endedAt: null, ...nothing, fallback };
  }

  /** `sizes`: null for an unknown size. */
  begin(wanted: number, sizes: readonly (number | null)[]): void {
    const wantedBytes = sizes.reduce<number | null>(
      (sum, size) => (sum === null || size === null ? null : sum + size),
      0,
    );
    this.#change({ wanted, wantedBytes });
  }

  get bytes(): number {
    return this.#row.bytes;
  }

  arrived(bytes: number, way: string): void {
    this.#change({ bytes: this.#row.bytes + bytes, way });
  }

  /** So many bytes of a file have arrived; undefined: it is not on its way any more. */
  file(name: string, bytes: number | undefined): void {
    const others = this.#row.arriving.filter(([other]) => other !== name);
    this.#change({ arriving: bytes === undefined ? others : [...others, [name, bytes]] });
  }

  done(outcome: ResultOutcome): void {
    if (outcome === 'changed' || outcome === 'same') this.tally.fetched += 1;
    if (outcome === 'changed' || outcome === 'failed') this.tally[outcome] += 1;
    this.#change({ done: this.#row.done + 1 });
  }

  fallback(reason: string | null): void {
    this.#change({ fallback: reason });
  }

  end(): void {
    this.#savedAt = Number.NEGATIVE_INFINITY;
    this.#change({ endedAt: this.#options.clock.now(), arriving: [] });
  }

  #change(changes: Partial<ResultSyncRow>): void {
    const { store, clock, onProgress } = this.#options;
    const updatedAt = clock.now();
    this.#row = { ...this.#row, ...changes, updatedAt };
    onProgress?.(this.#row);
    // A sync with nothing due keeps the row of the last one that had something.
    if (this.#row.wanted === 0 || updatedAt - this.#savedAt < SAVED_EVERY_MS) return;
    this.#savedAt = updatedAt;
    store.transaction(() => store.resultSyncs.save(this.#row));
  }
}
