/** What the middleware tells of jobs, and how the last look at it went. */
import type { JobId } from '../job.ts';
import type { JobInformationRow, JobLookRow } from './rows.ts';
import type { Sql } from './sql.ts';
import { Table } from './table.ts';

export class JobInformations {
  readonly #sql: Sql;
  readonly #information: Table<JobInformationRow>;
  readonly #looks: Table<JobLookRow & { readonly one: 1 }>;

  constructor(sql: Sql) {
    this.#sql = sql;
    this.#information = new Table(sql, 'job_information', { information: 'json' });
    this.#looks = new Table(sql, 'job_looks', { error: 'json' });
  }

  /** Undefined if the middleware has told nothing of the job. */
  get(jobId: JobId): JobInformationRow | undefined {
    return this.#information.get('WHERE job_id = ?', jobId);
  }

  all(): JobInformationRow[] {
    return this.#information.all('');
  }

  save(row: JobInformationRow): void {
    this.#information.save(row);
  }

  /** The same was told again. */
  setToldAt(jobId: JobId, toldAt: number): void {
    this.#sql.run('UPDATE job_information SET told_at = ? WHERE job_id = ?', toldAt, jobId);
  }

  /** Undefined if there was none. */
  lastLook(): JobLookRow | undefined {
    return this.#looks.get('');
  }

  saveLook(row: JobLookRow): void {
    this.#looks.save({ ...row, one: 1 });
  }
}
