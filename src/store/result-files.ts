/** The ledger of the result files: what was listed, what was fetched, and when each is looked at again. */
import type { JobId } from '../job.ts';
import type { SqliteDatabase } from './database.ts';
import type { ResultCounts, ResultRow } from './rows.ts';

const COLUMNS = `job_id AS jobId, name, state, reason, bytes, sha256, live, listed_at AS listedAt,
  fetched_at AS fetchedAt, due_at AS dueAt, interval_ms AS intervalMs`;

/** Rows that are read at a time: how many there are, the cluster decides. */
const PAGE_ROWS = 500;

/** How many names a row would say nothing more of. */
export type UnkeptNames = Readonly<Record<'refused' | 'left-out', number>>;

export class ResultFiles {
  readonly #db: SqliteDatabase;
  readonly #page;
  readonly #links;
  readonly #notSynced;
  readonly #save;
  readonly #forget;
  readonly #unkept;
  readonly #setUnkept;
  readonly #counts;

  constructor(db: SqliteDatabase) {
    this.#db = db;
    this.#page = db.prepare<[string, string, number], ResultRow>(
      `SELECT ${COLUMNS} FROM result_files WHERE job_id = ? AND name >= ? ORDER BY name LIMIT ?`,
    );
    this.#links = db.prepare<[string], { name: string; live: string }>(
      `SELECT name, live FROM result_files INDEXED BY result_files_linked WHERE job_id = ? AND live IS NOT NULL`,
    );
    this.#notSynced = db.prepare<[string, number], ResultRow>(
      `SELECT ${COLUMNS} FROM result_files INDEXED BY result_files_not_synced
        WHERE job_id = ? AND reason IS NOT NULL LIMIT ?`,
    );
    // No REPLACE: it would not tell the counts of the row that goes.
    this.#save = db.prepare(`
      INSERT INTO result_files
        (job_id, name, state, reason, bytes, sha256, live, listed_at, fetched_at, due_at, interval_ms)
      VALUES (@jobId, @name, @state, @reason, @bytes, @sha256, @live, @listedAt, @fetchedAt, @dueAt, @intervalMs)
      ON CONFLICT DO UPDATE SET state = @state, reason = @reason, bytes = @bytes, sha256 = @sha256, live = @live,
        listed_at = @listedAt, fetched_at = @fetchedAt, due_at = @dueAt, interval_ms = @intervalMs`);
    this.#forget = db.prepare('DELETE FROM result_files WHERE job_id = ? AND name = ?');
    this.#unkept = db.prepare<[string, string], { unkept: number }>(
      'SELECT unkept FROM result_counts WHERE job_id = ? AND state = ?',
    );
    this.#setUnkept = db.prepare(`
      INSERT INTO result_counts (job_id, state, kept, unkept, bytes) VALUES (@jobId, @state, 0, @unkept, 0)
      ON CONFLICT DO UPDATE SET unkept = @unkept`);
    // total() is 0 of nothing, where sum() is null.
    this.#counts = db.prepare<[string], ResultCounts>(`
      SELECT total(names) AS listed, total(names) FILTER (WHERE state IN ('synced', 'in-flux', 'linked')) AS synced,
        total(names) FILTER (WHERE state = 'linked') AS linked,
        total(names) FILTER (WHERE state = 'in-flux') AS inFlux,
        total(names) FILTER (WHERE state = 'listed') AS queued,
        total(names) FILTER (WHERE state IN ('failed', 'refused')) AS failed,
        total(names) FILTER (WHERE state = 'refused') AS refused,
        total(names) FILTER (WHERE state = 'left-out') AS leftOut, total(bytes) AS bytes
      FROM (SELECT state, kept + unkept AS names, bytes FROM result_counts WHERE job_id = ?)`);
  }

  /** All rows of a job, in the order of their names. They may be changed meanwhile. */
  *ofJob(jobId: JobId): Generator<ResultRow, void> {
    for (let from: string | undefined = ''; from !== undefined; ) {
      const rows = this.#page.all(jobId, from, PAGE_ROWS);
      yield* rows;
      const last = rows.length === PAGE_ROWS ? rows.at(-1) : undefined;
      // The next name there can be.
      from = last === undefined ? undefined : `${last.name}\0`;
    }
  }

  /** The names that are live files, each with what `keyText` writes of it. */
  links(jobId: JobId): { readonly name: string; readonly live: string }[] {
    return this.#links.all(jobId);
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

  /** Removes many rows in one transaction. */
  forgetAll(rows: readonly Pick<ResultRow, 'jobId' | 'name'>[]): void {
    this.#db.transaction(() => {
      for (const { jobId, name } of rows) this.#forget.run(jobId, name);
    })();
  }

  /** How many listed names have no row. */
  setUnkept(jobId: JobId, unkept: UnkeptNames): void {
    for (const [state, count] of Object.entries(unkept)) {
      // Mostly nothing changed, and then nothing is written.
      if (count !== (this.#unkept.get(jobId, state)?.unkept ?? 0)) this.#setUnkept.run({ jobId, state, unkept: count });
    }
  }

  counts(jobId: JobId): ResultCounts {
    const counts = this.#counts.get(jobId);
    if (counts === undefined) throw new Error('a query of counts has a row');
    return counts;
  }
}
