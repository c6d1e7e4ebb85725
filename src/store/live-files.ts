/** The committed state of the live mirrors. */
import type { JobId, LiveFileKey, LiveFileName, TaskId } from '../job.ts';
import { type Comparison, isVerified, reasonAgainst } from '../proven.ts';
import type { PortableRow } from './portable-rows.ts';
import type { LiveFileRow, StoredError } from './rows.ts';
import { jsonOf, type Sql, Table } from './sql.ts';

export function tasksOf(sql: Sql, jobId: JobId): TaskId[] {
  const select = 'SELECT DISTINCT task_id AS taskId FROM live_files WHERE job_id = ?';
  return sql.all<Pick<LiveFileRow, 'taskId'>>(select, jobId).map(({ taskId }) => taskId);
}

/** Adds these live files to these tasks. Called within a transaction. */
export function addFiles(sql: Sql, jobId: JobId, tasks: readonly TaskId[], files: readonly LiveFileName[]): void {
  const insert = 'INSERT OR IGNORE INTO live_files (job_id, task_id, file) VALUES (?, ?, ?)';
  for (const task of tasks) for (const file of files) sql.run(insert, jobId, task, file);
}

export class LiveFiles {
  readonly #sql: Sql;
  readonly #table: Table<LiveFileRow>;

  constructor(sql: Sql) {
    this.#sql = sql;
    this.#table = new Table(sql, 'live_files', { mismatches: 'json', error: 'json', early: 'flag' });
  }

  ofJob(jobId: JobId): LiveFileRow[] {
    return this.#table.all('WHERE job_id = ?', jobId);
  }

  hasAny(jobId: JobId): boolean {
    return this.#sql.get('SELECT 1 FROM live_files WHERE job_id = ? LIMIT 1', jobId) !== undefined;
  }

  get(jobId: JobId, { taskId, file }: LiveFileKey): LiveFileRow | undefined {
    return this.#table.get('WHERE job_id = ? AND task_id = ? AND file = ?', jobId, taskId, file);
  }

  /** The generation of a mirror; undefined if it has none. Committed before the first byte of a new one. */
  generation(jobId: JobId, { taskId, file }: LiveFileKey): number | undefined {
    const select = 'SELECT generation FROM live_files WHERE job_id = ? AND task_id = ? AND file = ?';
    return this.#sql.get<Pick<LiveFileRow, 'generation'>>(select, jobId, taskId, file)?.generation;
  }

  save(row: LiveFileRow): void {
    this.#table.save(row);
  }

  /** Saves the last comparison of a mirror, without what a poll may commit meanwhile. */
  setComparison({ jobId, taskId, file }: LiveFileRow, { verified, unverified, early }: Comparison): void {
    const set = `UPDATE live_files SET verified = ?, unverified = ?, early = ?
      WHERE job_id = ? AND task_id = ? AND file = ?`;
    this.#sql.run(set, verified, unverified, Number(early), jobId, taskId, file);
  }

  portable(row: LiveFileRow): PortableRow {
    const { jobId, taskId, file } = row;
    return { jobId, table: 'live_files', key: JSON.stringify([taskId, file]), row: this.#table.portable(row) };
  }

  setError(jobId: JobId, { taskId, file }: LiveFileKey, error: StoredError | null): void {
    const set = 'UPDATE live_files SET error = ? WHERE job_id = ? AND task_id = ? AND file = ?';
    this.#sql.run(set, jsonOf(error), jobId, taskId, file);
  }
}

export function shownLiveFile(row: LiveFileRow) {
  const { taskId, file, generation, position, grownAt, error } = row;
  return {
    taskId,
    file,
    generation,
    grownAt,
    error,
    bytes: position,
    verified: isVerified(row),
    unproven: reasonAgainst(row) ?? null,
  };
}
