/** The ledger of the result files: what was listed, what was fetched, and when each is looked at again. */
import type { JobId } from '../job.ts';
import type { ResultCounts, ResultRow } from './rows.ts';
import type { Sql } from './sql.ts';
import { Table } from './table.ts';

/** Rows that are read at a time: how many there are, the cluster decides. */
const PAGE_ROWS = 500;

/** How many names a row would say nothing more of. */
export type UnkeptNames = Readonly<Record<'refused' | 'left-out', number>>;

export class ResultFiles {
  readonly #sql: Sql;
  readonly #table: Table<ResultRow>;

  constructor(sql: Sql) {
    this.#sql = sql;
    this.#table = new Table(sql, 'result_files', { stampProven: 'flag' });
  }

  /** All rows of a job, in the order of their names. They may be changed meanwhile. */
  *ofJob(jobId: JobId): Generator<ResultRow, void> {
    for (let from: string | undefined = ''; from !== undefined; ) {
      const rows = this.#table.all('WHERE job_id = ? AND name >= ? ORDER BY name LIMIT ?', jobId, from, PAGE_ROWS);
      yield* rows;
      const last = rows.length === PAGE_ROWS ? rows.at(-1) : undefined;
      // The next name there can be.
      from = last === undefined ? undefined : `${last.name}\0`;
    }
  }

  /** The names that are live files, each with what `keyText` writes of it. */
  links(jobId: JobId): { readonly name: string; readonly live: string }[] {
    const select = 'SELECT name, live FROM result_files INDEXED BY result_files_linked';
    return this.#sql.all(`${select} WHERE job_id = ? AND live IS NOT NULL`, jobId);
  }

  /** Those with a reason, at most so many. */
  notSynced(jobId: JobId, most: number): ResultRow[] {
    const rest = 'INDEXED BY result_files_not_synced WHERE job_id = ? AND reason IS NOT NULL LIMIT ?';
    return this.#table.all(rest, jobId, most);
  }

  /** Saves many in one transaction. */
  saveAll(rows: readonly ResultRow[]): void {
    this.#sql.transaction(() => {
      for (const row of rows) this.#table.save(row);
    });
  }

  /** Removes many rows in one transaction. */
  forgetAll(rows: readonly Pick<ResultRow, 'jobId' | 'name'>[]): void {
    const forget = 'DELETE FROM result_files WHERE job_id = ? AND name = ?';
    this.#sql.transaction(() => {
      for (const { jobId, name } of rows) this.#sql.run(forget, jobId, name);
    });
  }

  /** How many listed names have no row. */
  setUnkept(jobId: JobId, unkept: UnkeptNames): void {
    const get = 'SELECT unkept FROM result_counts WHERE job_id = ? AND state = ?';
    const set = `
      INSERT INTO result_counts (job_id, state, kept, unkept, bytes) VALUES (@jobId, @state, 0, @count, 0)
      ON CONFLICT DO UPDATE SET unkept = @count`;
    for (const [state, count] of Object.entries(unkept)) {
      // Mostly nothing changed, and then nothing is written.
      const before = this.#sql.get<{ unkept: number }>(get, jobId, state)?.unkept ?? 0;
      if (count !== before) this.#sql.run(set, { jobId, state, count });
    }
  }

  counts(jobId: JobId): ResultCounts {
    // total() is 0 of nothing, where sum() is null.
    const select = `
      SELECT total(names) AS listed, total(names) FILTER (WHERE state IN ('synced', 'in-flux', 'linked')) AS synced,
        total(names) FILTER (WHERE state = 'linked') AS linked,
        total(names) FILTER (WHERE state = 'in-flux') AS inFlux,
        total(names) FILTER (WHERE state = 'listed') AS queued,
        total(names) FILTER (WHERE state IN ('failed', 'refused')) AS failed,
        total(names) FILTER (WHERE state = 'refused') AS refused,
        total(names) FILTER (WHERE state = 'left-out') AS leftOut, total(bytes) AS bytes
      FROM (SELECT state, kept + unkept AS names, bytes FROM result_counts WHERE job_id = ?)`;
    return this.#sql.sums(select, jobId);
  }
}
