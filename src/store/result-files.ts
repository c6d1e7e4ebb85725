/** The ledger of the result files: what was listed, what was fetched, and when each is looked at again. */
import type { JobId } from '../job.ts';
import type { SqliteDatabase } from './database.ts';
import type { ResultCounts, ResultRow } from './rows.ts';

const COLUMNS = `job_id AS jobId, name, state, reason, bytes, sha256, live, listed_at AS listedAt,
  fetched_at AS fetchedAt, due_at AS dueAt, interval_ms AS intervalMs`;

export class ResultFiles {
  readonly #db: SqliteDatabase;
  readonly #ofJob;
  readonly #notSynced;
  readonly #save;
  readonly #counts;

  constructor(db: SqliteDatabase) {
    this.#db = db;
    this.#ofJob = db.prepare<[string], ResultRow>(`SELECT ${COLUMNS} FROM result_files WHERE job_id = ?`);
    this.#notSynced = db.prepare<[string, number], ResultRow>(
      `SELECT ${COLUMNS} FROM result_files WHERE job_id = ? AND reason IS NOT NULL LIMIT ?`,
    );
    this.#save = db.prepare(`
      INSERT OR REPLACE INTO result_files
        (job_id, name, state, reason, bytes, sha256, live, listed_at, fetched_at, due_at, interval_ms)
      VALUES (@jobId, @name, @state, @reason, @bytes, @sha256, @live, @listedAt, @fetchedAt, @dueAt, @intervalMs)`);
    this.#counts = db.prepare<[string], ResultCounts>(`
      SELECT count(*) AS listed, count(*) FILTER (WHERE state IN ('synced', 'in-flux', 'linked')) AS synced,
        count(*) FILTER (WHERE state = 'linked') AS linked, count(*) FILTER (WHERE state = 'in-flux') AS inFlux,
        count(*) FILTER (WHERE state = 'listed') AS queued,
        count(*) FILTER (WHERE state IN ('failed', 'refused')) AS failed,
        count(*) FILTER (WHERE state = 'refused') AS refused,
        count(*) FILTER (WHERE state = 'left-out') AS leftOut, coalesce(sum(bytes), 0) AS bytes
      FROM result_files WHERE job_id = ?`);
  }

  ofJob(jobId: JobId): ResultRow[] {
    return this.#ofJob.all(jobId);
  }

  /** Those with a reason, at most so many. */
  notSynced(jobId: JobId, most: number): ResultRow[] {
    return this.#notSynced.all(jobId, most);
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
    const counts = this.#counts.get(jobId);
    if (counts === undefined) throw new Error('a query of counts has a row');
    return counts;
  }
}
