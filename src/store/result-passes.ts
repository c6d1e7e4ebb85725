/** How the last look at each job's results went: for `status`, and for commands that wait for the running agent. */
import type { JobId } from '../job.ts';
import type { ResultPassRow } from './rows.ts';
import type { Sql } from './sql.ts';
import { Table } from './table.ts';

export class ResultPasses {
  readonly #table: Table<ResultPassRow>;

  constructor(sql: Sql) {
    this.#table = new Table(sql, 'result_passes', {});
  }

  get(jobId: JobId): ResultPassRow | undefined {
    return this.#table.get('WHERE job_id = ?', jobId);
  }

  save(row: ResultPassRow): void {
    this.#table.save(row);
  }
}
