/** The searches for tasks that no order names, and the tasks that they find. */
import type { JobId, TaskId } from '../job.ts';
import { addFiles, tasksOf } from './live-files.ts';
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
    return tasksOf(this.#sql, jobId);
  }

  /** Found tasks get their live files. Called within a transaction. */
  addTasks({ jobId, files }: TaskSearchRow, tasks: readonly TaskId[]): void {
    addFiles(this.#sql, jobId, tasks, files);
  }
}
