/** Under which lease the rows of each job were taken over, and whose state this is, in a fleet. */
import { randomUUID } from 'node:crypto';
import type { JobId } from '../job.ts';
import type { Sql } from './sql.ts';

export interface FleetLeaseRow {
  readonly jobId: JobId;
  /** Grows with each owner of the job. */
  readonly attempt: number;
}

export class FleetLeases {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Tells this state from those of other agents. */
  stateId(): string {
    const insert =
      'INSERT INTO fleet_member (one, state_id) VALUES (1, ?) ON CONFLICT DO UPDATE SET state_id = state_id';
    return this.#sql.sums<{ readonly stateId: string }>(`${insert} RETURNING state_id AS stateId`, randomUUID())
      .stateId;
  }

  all(): FleetLeaseRow[] {
    return this.#sql.all('SELECT job_id AS jobId, attempt FROM fleet_leases');
  }

  save({ jobId, attempt }: FleetLeaseRow): void {
    const insert = 'INSERT INTO fleet_leases (job_id, attempt) VALUES (?, ?)';
    this.#sql.run(`${insert} ON CONFLICT DO UPDATE SET attempt = excluded.attempt`, jobId, attempt);
  }
}
