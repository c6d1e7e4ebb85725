/**
 * The ledger of one look at a job's results: rows are saved many at a time, and only after the names of their files are
 * safely in their directories.
 */
import path from 'node:path';
import { keyText } from '../../job.ts';
import type { LiveFileRow, ResultRow } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import { flushPath } from '../directories.ts';

const MOST_ROWS = 500;
const LONGEST_WAIT_MS = 1_000;
/** A file that does not change is looked at at least so often while its job is followed. */
const LONGEST_INTERVAL_MS = 60 * 60_000;

export interface LedgerOptions {
  readonly store: Store;
  readonly now: () => number;
}

export class Ledger {
  readonly #options: LedgerOptions;
  #rows: ResultRow[] = [];
  #directories = new Set<string>();
  #oldestAt = 0;
  #flushing: Promise<void> = Promise.resolve();

  constructor(options: LedgerOptions) {
    this.#options = options;
  }

  /** Takes a row in; `target` is what was put in its place, if anything was. */
  async save(row: ResultRow, target?: string): Promise<void> {
    this.add(row, target);
    const waitedMs = this.#options.now() - this.#oldestAt;
    if (this.#rows.length >= MOST_ROWS || waitedMs >= LONGEST_WAIT_MS) await this.flush();
  }

  /** Takes a row in, to be saved with the others. */
  add(row: ResultRow, target?: string): void {
    if (this.#rows.length === 0) this.#oldestAt = this.#options.now();
    this.#rows.push(row);
    if (target !== undefined) this.#directories.add(path.dirname(target));
  }

  /** Saves what was taken in. */
  flush(): Promise<void> {
    this.#flushing = this.#flushing.then(async () => {
      const rows = this.#rows;
      const directories = this.#directories;
      this.#rows = [];
      this.#directories = new Set();
      for (const directory of directories) await flushPath(directory);
      const { store } = this.#options;
      if (rows.length > 0) store.transaction(() => store.results.saveAll(rows));
    });
    return this.#flushing;
  }
}

export interface FetchedFile {
  readonly bytes: number;
  readonly sha256: string;
}

/** The row after its file came; `baseMs` is the shortest interval. */
export function afterFetch(row: ResultRow, fetched: FetchedFile, baseMs: number, now: number): ResultRow {
  const { bytes, sha256 } = fetched;
  const same = row.sha256 === sha256;
  const intervalMs = same ? longer(row.intervalMs) : baseMs;
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
