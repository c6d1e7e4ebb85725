/**
 * The result files of a job. The listing is full each time and says neither size nor time (field notes 4), so a ledger
 * keeps what was fetched: a file is fetched when it is first listed, and looked at again at intervals that stretch
 * while it does not change.
 */
import path from 'node:path';
import ignore from 'ignore';
import { asJobtailError, type JobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import type { ResultRow } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import { printable, resultPath } from './names.ts';
import type { Remote } from './ports.ts';
import { refusesFile } from './raw-bytes.ts';
import { clearPartials, fetchResult, TooLarge } from './result-file.ts';

export interface ResultsOptions {
  readonly intervalMs: number;
  /** Patterns as in .gitignore: a file is fetched if one includes it and none excludes it. */
  readonly include: readonly string[];
  readonly exclude: readonly string[];
  readonly maxFileBytes: number | null;
}

export interface ResultsContext {
  readonly store: Store;
  readonly mirrorDirectory: string;
  readonly options: ResultsOptions;
  readonly now: () => number;
  /** Told of each file that was fetched, changed or not. */
  readonly onFetched?: (jobId: JobId, name: string, bytes: number, changed: boolean) => void;
  /** Told once of each name that is refused. */
  readonly onRefused?: (jobId: JobId, name: string, reason: string) => void;
}

export interface ResultsPass {
  readonly remote: Remote;
  /** Every file is looked at, whether it is due or not. */
  readonly final: boolean;
  readonly signal: AbortSignal;
}

const LONGEST_INTERVAL_MS = 60 * 60_000;

/** Where the results of a job are; a contract with those who read them. */
export function resultsDirectory(mirrorDirectory: string, jobId: JobId): string {
  return path.join(mirrorDirectory, jobId, 'results');
}

/** Results fetched by one pass, and those that could not be. */
export interface ResultsEnd {
  readonly fetched: number;
  readonly changed: number;
  readonly failed: number;
}

export class Results {
  readonly #context: ResultsContext;
  readonly #cleared = new Set<JobId>();

  constructor(context: ResultsContext) {
    this.#context = context;
  }

  /** One look at a job's results: lists, then fetches what is due. A file that fails by itself stops no other. */
  async sync(jobId: JobId, pass: ResultsPass): Promise<ResultsEnd> {
    const { store, mirrorDirectory, now } = this.#context;
    if (!this.#cleared.has(jobId)) {
      await clearPartials(resultsDirectory(mirrorDirectory, jobId));
      this.#cleared.add(jobId);
    }
    const listed = await pass.remote.listChangedFiles(jobId, pass.signal);
    this.#enter(jobId, listed);
    const names = new Set(listed);
    const due = store.results
      .ofJob(jobId)
      .filter((row) => names.has(row.name) && row.state !== 'refused' && (pass.final || row.dueAt <= now()))
      .filter((row) => row.state !== 'left-out' || row.bytes !== null);
    const end = { fetched: 0, changed: 0, failed: 0 };
    for (const row of due) {
      const next = await this.#fetch(row, pass);
      store.results.save(next.row);
      end.fetched += next.row.state === 'failed' ? 0 : 1;
      end.changed += next.changed ? 1 : 0;
      end.failed += next.row.state === 'failed' ? 1 : 0;
    }
    return end;
  }

  /** Notes names that are listed for the first time. */
  #enter(jobId: JobId, listed: readonly string[]): void {
    const { store, now, options, onRefused } = this.#context;
    const known = new Set(store.results.ofJob(jobId).map((row) => row.name));
    const fresh = [...new Set(listed)].filter((name) => !known.has(name));
    const include = ignore({ allowRelativePaths: true }).add([...options.include]);
    const exclude = ignore({ allowRelativePaths: true }).add([...options.exclude]);
    const rows = fresh.map((name): ResultRow => {
      const base = { jobId, name, bytes: null, sha256: null, listedAt: now(), fetchedAt: null, dueAt: now() };
      const row = { ...base, intervalMs: options.intervalMs };
      const found = resultPath(name);
      if ('refused' in found) {
        onRefused?.(jobId, printable(name), found.refused);
        return { ...row, state: 'refused', reason: found.refused };
      }
      const relative = found.parts.join('/');
      if (!include.ignores(relative)) return { ...row, state: 'left-out', reason: 'results.include does not name it' };
      if (exclude.ignores(relative)) return { ...row, state: 'left-out', reason: 'results.exclude names it' };
      return { ...row, state: 'listed', reason: null };
    });
    store.results.saveAll(rows);
  }

  async #fetch(row: ResultRow, { remote, signal }: ResultsPass): Promise<{ row: ResultRow; changed: boolean }> {
    const { mirrorDirectory, options, now, onFetched } = this.#context;
    const found = resultPath(row.name);
    if ('refused' in found) return { row, changed: false };
    try {
      const fetched = await fetchResult({
        root: mirrorDirectory,
        target: path.join(resultsDirectory(mirrorDirectory, row.jobId), ...found.parts),
        knownSha256: row.sha256,
        download: (sink) => remote.downloadFile(row.jobId, row.name, sink, signal),
        maxBytes: options.maxFileBytes,
      });
      onFetched?.(row.jobId, row.name, fetched.bytes, fetched.changed);
      return { row: after(row, fetched, options.intervalMs, now()), changed: fetched.changed };
    } catch (thrown) {
      if (thrown instanceof TooLarge)
        return { row: this.#postponed(row, 'left-out', 'larger than results.maxFileBytes'), changed: false };
      const error = asJobtailError(thrown);
      if (!isOfOneFile(error)) throw error;
      return { row: this.#postponed(row, 'failed', error.message), changed: false };
    }
  }

  #postponed(row: ResultRow, state: 'failed' | 'left-out', reason: string): ResultRow {
    const intervalMs = Math.min(LONGEST_INTERVAL_MS, row.intervalMs * 2);
    return { ...row, state, reason, intervalMs, dueAt: this.#context.now() + intervalMs };
  }
}

function after(
  row: ResultRow,
  { bytes, sha256, changed }: { bytes: number; sha256: string; changed: boolean },
  baseMs: number,
  now: number,
): ResultRow {
  const again = row.fetchedAt !== null;
  const intervalMs = changed ? baseMs : Math.min(LONGEST_INTERVAL_MS, row.intervalMs * 2);
  const state = changed && again ? 'in-flux' : 'synced';
  return { ...row, state, reason: null, bytes, sha256, fetchedAt: now, intervalMs, dueAt: now + intervalMs };
}

/** Failures that say something of one file, not of the service, the session or the disk. */
function isOfOneFile(error: JobtailError): boolean {
  return (
    refusesFile(error) || error.code === 'malformed' || error.code === 'unexpected-answer' || error.code === 'local-io'
  );
}
