/** The ledger of the result files: what was listed, what was fetched, and when each is looked at again. */
import type { JobId } from '../job.ts';
import type { SqliteDatabase } from './database.ts';
import type { ResultCounts, ResultRow, ResultState } from './rows.ts';

interface RawResult {
  job_id: JobId;
  name: string;
  state: ResultState;
  reason: string | null;
  bytes: number | null;
  sha256: string | null;
  listed_at: number;
  fetched_at: number | null;
  due_at: number;
  interval_ms: number;
}

export class ResultFiles {
  readonly #db: SqliteDatabase;
  readonly #ofJob;
  readonly #save;
  readonly #counts;

  constructor(db: SqliteDatabase) {
    this.#db = db;
    this.#ofJob = db.prepare<[string], RawResult>('SELECT * FROM result_files WHERE job_id = ?');
    this.#save = db.prepare(`
      INSERT OR REPLACE INTO result_files
        (job_id, name, state, reason, bytes, sha256, listed_at, fetched_at, due_at, interval_ms)
      VALUES (@jobId, @name, @state, @reason, @bytes, @sha256, @listedAt, @fetchedAt, @dueAt, @intervalMs)`);
    this.#counts = db.prepare<[string], ResultCounts>(`
      SELECT count(*) AS listed, count(*) FILTER (WHERE state IN ('synced', 'in-flux')) AS synced,
        count(*) FILTER (WHERE state IN ('failed', 'refused')) AS failed,
        count(*) FILTER (WHERE state = 'left-out') AS leftOut, coalesce(sum(bytes), 0) AS bytes
      FROM result_files WHERE job_id = ?`);
  }

  ofJob(jobId: JobId): ResultRow[] {
    return this.#ofJob.all(jobId).map(rowOf);
  }

  save(row: ResultRow): void {
    this.#save.run({ ...row });
  }

  /** Saves many in one transaction. */
  saveAll(rows: readonly ResultRow[]): void {
    this.#db.transaction(() => {
      for (const row of rows) this.save(row);
    })();
  }

  counts(jobId: JobId): ResultCounts {
    return this.#counts.get(jobId) ?? { listed: 0, synced: 0, failed: 0, leftOut: 0, bytes: 0 };
  }
}

function rowOf(raw: RawResult): ResultRow {
  return {
    jobId: raw.job_id,
    name: raw.name,
    state: raw.state,
    reason: raw.reason,
    bytes: raw.bytes,
    sha256: raw.sha256,
    listedAt: raw.listed_at,
    fetchedAt: raw.fetched_at,
    dueAt: raw.due_at,
    intervalMs: raw.interval_ms,
  };
}
