/** How the last sync of each job's results went: for `status`, and for commands that wait for the running agent. */
import type { JobId } from '../job.ts';
import type { ResultSyncRow } from './rows.ts';
import type { Sql } from './sql.ts';
import { Table } from './table.ts';

export class ResultSyncs {
  readonly #table: Table<ResultSyncRow>;

  constructor(sql: Sql) {
    this.#table = new Table(sql, 'result_passes', {});
  }

  get(jobId: JobId): ResultSyncRow | undefined {
    return this.#table.get('WHERE job_id = ?', jobId);
  }

  all(): ResultSyncRow[] {
    return this.#table.all('');
  }

  save(row: ResultSyncRow): void {
    this.#table.save(row);
  }
}

/** Of a sync, from its beginning. */
export function bytesPerSecond({ startedAt, updatedAt, bytes }: ResultSyncRow): number {
  return updatedAt > startedAt ? (bytes * 1000) / (updatedAt - startedAt) : 0;
}
