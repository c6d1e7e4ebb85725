/** The searches for tasks that no order names, and the tasks that they find. */
import type { JobId, TaskId } from '../job.ts';
import type { TaskSearchRow } from './rows.ts';
import type { Sql } from './sql.ts';
import { Table } from './table.ts';

export class TaskSearches {
  readonly #sql: Sql;
  readonly #table: Table<TaskSearchRow>;

  constructor(sql: Sql) {
    this.#sql = sql;
    this.#table = new Table(sql, 'task_searches', { files: 'json' });
  }

  /** Undefined if the order of the job names its tasks. */
  get(jobId: JobId): TaskSearchRow | undefined {
    return this.#table.get('WHERE job_id = ?', jobId);
  }

  all(): TaskSearchRow[] {
    return this.#table.all('');
  }

  save(row: TaskSearchRow): void {
    this.#table.save(row);
  }

  /** The tasks of a job that are followed. */
  knownTasks(jobId: JobId): TaskId[] {
    const rows = this.#sql.all<{ readonly taskId: TaskId }>(
      'SELECT DISTINCT task_id AS taskId FROM live_files WHERE job_id = ?',
      jobId,
    );
    return rows.map(({ taskId }) => taskId);
  }

  /** Found tasks get their live files. Called within a transaction. */
  addTasks({ jobId, files }: TaskSearchRow, tasks: readonly TaskId[]): void {
    const insert = 'INSERT OR IGNORE INTO live_files (job_id, task_id, file) VALUES (?, ?, ?)';
    for (const task of tasks) for (const file of files) this.#sql.run(insert, jobId, task, file);
  }
}
