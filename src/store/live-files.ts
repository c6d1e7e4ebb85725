/** The committed state of the live mirrors. */
import type { JobId, LiveFileKey } from '../job.ts';
import type { PortableRow } from './portable-rows.ts';
import type { LiveFileRow, Trouble } from './rows.ts';
import type { Sql } from './sql.ts';
import { jsonOf, Table } from './table.ts';

export class LiveFiles {
  readonly #sql: Sql;
  readonly #table: Table<LiveFileRow>;

  constructor(sql: Sql) {
    this.#sql = sql;
    this.#table = new Table(sql, 'live_files', { inexact: 'json', error: 'json' });
  }

  ofJob(jobId: JobId): LiveFileRow[] {
    return this.#table.all('WHERE job_id = ?', jobId);
  }

  /** Commits the state of a mirror: only after its bytes were flushed. */
  save(row: LiveFileRow): void {
    this.#table.save(row);
  }

  /** A row as it travels to another store. */
  portable(row: LiveFileRow): PortableRow {
    const { jobId, taskId, file } = row;
    return { jobId, table: 'live_files', key: JSON.stringify([taskId, file]), row: this.#table.portable(row) };
  }

  setError(jobId: JobId, { taskId, file }: LiveFileKey, error: Trouble | null): void {
    const set = 'UPDATE live_files SET error = ? WHERE job_id = ? AND task_id = ? AND file = ?';
    this.#sql.run(set, jsonOf(error), jobId, taskId, file);
  }
}
