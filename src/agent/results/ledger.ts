/**
 * The ledger of one look at a job's results: rows are saved many at a time, and only after the names of their files are
 * safely in their directories.
 */
import path from 'node:path';
import { type JobId, keyText } from '../../job.ts';
import { Slices } from '../../slices.ts';
import type { UnkeptNames } from '../../store/result-files.ts';
import type { LiveFileRow, ResultRow } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import { flushAll } from '../../system/flush.ts';
import type { FileDigest } from '../ports.ts';

/** Of one transaction, and so many are not kept waiting. */
const MANY_ROWS = 500;
const LONGEST_WAIT_MS = 1_000;
/** A file that does not change is looked at at least so often while its job is followed. */
const LONGEST_INTERVAL_MS = 60 * 60_000;

export interface LedgerOptions {
  readonly store: Store;
  readonly now: () => number;
  /** Whether the results lie on a network file system. */
  readonly onNetwork: boolean;
}

export class Ledger {
  readonly #options: LedgerOptions;
  #rows: ResultRow[] = [];
  #forgotten: ResultRow[] = [];
  #directories = new Set<string>();
  #oldestAt = 0;
  #flushing: Promise<void> = Promise.resolve();

  constructor(options: LedgerOptions) {
    this.#options = options;
  }

  /** Takes a row in, to be saved with others; `target` is what was put in its place, if anything was. */
  add(row: ResultRow, target?: string): void {
    this.#begin();
    this.#rows.push(row);
    if (target !== undefined) this.#directories.add(path.dirname(target));
  }

  /** A row that is to go; if it is taken in anew besides, it stays. */
  forget(row: ResultRow): void {
    this.#begin();
    this.#forgotten.push(row);
  }

  /** How many names of a job have no row. */
  setUnkept(jobId: JobId, unkept: UnkeptNames): void {
    this.#options.store.results.setUnkept(jobId, unkept);
  }

  /** Saves what was taken in, if it is much or waits for long. */
  async keepUp(): Promise<void> {
    const waiting = this.#rows.length + this.#forgotten.length;
    if (waiting === 0) return;
    if (waiting >= MANY_ROWS || this.#options.now() - this.#oldestAt >= LONGEST_WAIT_MS) await this.flush();
  }

  /** Saves what was taken in. */
  flush(): Promise<void> {
    this.#flushing = this.#flushing.then(async () => {
      const [rows, forgotten, directories] = [this.#rows, this.#forgotten, this.#directories];
      this.#rows = [];
      this.#forgotten = [];
      this.#directories = new Set();
      const { store, onNetwork } = this.#options;
      await flushAll(directories, onNetwork);
      await this.#inTransactions(forgotten, (some) => store.results.forgetAll(some));
      await this.#inTransactions(rows, (some) => store.results.saveAll(some));
    });
    return this.#flushing;
  }

  async #inTransactions(rows: readonly ResultRow[], work: (some: readonly ResultRow[]) => void): Promise<void> {
    const slices = new Slices();
    for (let at = 0; at < rows.length; at += MANY_ROWS) {
      this.#options.store.transaction(() => work(rows.slice(at, at + MANY_ROWS)));
      await slices.next();
    }
  }

  #begin(): void {
    if (this.#rows.length + this.#forgotten.length === 0) this.#oldestAt = this.#options.now();
  }
}

/**
 * The row after its file came. The interval stretches while the file stays the same, and while it goes on changing: one
 * that is written all the time is not fetched all the time. With its first change it begins anew, with `baseMs`.
 */
export function afterFetch(row: ResultRow, digest: FileDigest, baseMs: number, now: number): ResultRow {
  const { bytes, sha256 } = digest;
  const same = row.sha256 === sha256;
  const intervalMs = same || row.state === 'in-flux' ? longer(row.intervalMs) : baseMs;
  const state = same || row.sha256 === null ? 'synced' : 'in-flux';
  const due = { intervalMs, dueAt: now + intervalMs };
  return { ...row, ...due, state, reason: null, live: null, bytes, sha256, fetchedAt: now };
}

/** The row once it is a link. */
export function afterLink(row: ResultRow, live: LiveFileRow, now: number): ResultRow {
  const linked = { state: 'linked', reason: null, live: keyText(live), bytes: null, sha256: null } as const;
  return { ...row, ...linked, fetchedAt: now };
}

/** The row of a file that did not come. */
export function postponed(row: ResultRow, state: 'failed' | 'left-out', reason: string, now: number): ResultRow {
  const intervalMs = longer(row.intervalMs);
  return { ...row, state, reason, intervalMs, dueAt: now + intervalMs };
}

const longer = (intervalMs: number) => Math.min(LONGEST_INTERVAL_MS, intervalMs * 2);
