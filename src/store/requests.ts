/** What commands ask of the running agent. The row is the truth; touching the wake file only makes it quicker. */
import type { JobId } from '../job.ts';
import type { RequestRow } from './rows.ts';
import type { Sql } from './sql.ts';
import { Table } from './table.ts';

export class Requests {
  readonly #sql: Sql;
  readonly #table: Table<RequestRow>;

  constructor(sql: Sql) {
    this.#sql = sql;
    this.#table = new Table(sql, 'requests', {});
  }

  /** The id of the new request. */
  add(jobId: JobId, kind: RequestRow['kind'], now: number): number {
    const insert = 'INSERT INTO requests (job_id, kind, made_at) VALUES (?, ?, ?)';
    return Number(this.#sql.run(insert, jobId, kind, now).lastInsertRowid);
  }

  /** The ones without an answer, oldest first. */
  open(): RequestRow[] {
    return this.#table.all('WHERE answer IS NULL ORDER BY request_id');
  }

  get(requestId: number): RequestRow | undefined {
    return this.#table.get('WHERE request_id = ?', requestId);
  }

  answer(requestId: number, answer: string): void {
    this.#sql.run('UPDATE requests SET answer = ? WHERE request_id = ?', answer, requestId);
  }

  /** Removes answered ones made before `before`. */
  forgetAnswered(before: number): void {
    this.#sql.run('DELETE FROM requests WHERE answer IS NOT NULL AND made_at < ?', before);
  }
}
