/**
 * Which rows of jobs were changed and are not known elsewhere yet. They are noted by triggers of this connection alone, in
 * memory: the tables are as they are, and nothing is noted where nobody asks for it.
 */
import type { JobId } from '../job.ts';
import { PORTABLE_KEYS, PORTABLE_TABLES, type PortableTable, type RowKey } from './portable-rows.ts';
import type { Sql } from './sql.ts';

/** A changed row, by the number of its last change. */
export interface RowChange extends RowKey {
  readonly change: number;
}

export class RowChanges {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
    sql.pragma('temp_store = MEMORY');
    // A number is never given twice: a row that is changed while it is written elsewhere is written again.
    sql.run(`CREATE TEMP TABLE row_changes (change INTEGER PRIMARY KEY AUTOINCREMENT, of TEXT, job_id TEXT, key TEXT)`);
    sql.run('CREATE UNIQUE INDEX temp.row_changes_by_row ON row_changes (job_id, of, key)');
    for (const table of PORTABLE_TABLES) for (const event of ['INSERT', 'UPDATE', 'DELETE']) this.#note(table, event);
  }

  /** The jobs with changes, those first that wait longest. */
  jobs(): JobId[] {
    const rows = this.#sql.all<{ readonly jobId: JobId }>(
      'SELECT job_id AS jobId FROM row_changes GROUP BY job_id ORDER BY min(change)',
    );
    return rows.map(({ jobId }) => jobId);
  }

  /** Those of a job, the oldest first. */
  ofJob(jobId: JobId, most: number): RowChange[] {
    const select = 'SELECT change, job_id AS jobId, of AS "table", key FROM row_changes';
    return this.#sql.all(`${select} WHERE job_id = ? ORDER BY change LIMIT ?`, jobId, most);
  }

  /** They are known elsewhere; what was changed since is not. */
  done(changes: readonly RowChange[]): void {
    for (const { change } of changes) this.#sql.run('DELETE FROM row_changes WHERE change = ?', change);
  }

  /** What there is of a job need not be known elsewhere. */
  forget(jobId: JobId): void {
    this.#sql.run('DELETE FROM row_changes WHERE job_id = ?', jobId);
  }

  #note(table: PortableTable, event: string): void {
    const row = event === 'DELETE' ? 'old' : 'new';
    const names = PORTABLE_KEYS[table].map((name) => `${row}.${name}`);
    const key = names.length === 0 ? "'[]'" : `json_array(${names.join(', ')})`;
    // Not REPLACE: what a statement says of conflicts holds within the triggers that it fires, too.
    this.#sql.run(`CREATE TEMP TRIGGER ${table}_${event.toLowerCase()}ed AFTER ${event} ON main.${table} BEGIN
      DELETE FROM row_changes WHERE job_id = ${row}.job_id AND of = '${table}' AND key = ${key};
      INSERT INTO row_changes (of, job_id, key) VALUES ('${table}', ${row}.job_id, ${key});
    END`);
  }
}
