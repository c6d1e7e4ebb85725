/**
 * The watched jobs: their orders and states, what the middleware reports of them, and what commands request for them.
 */
import type { JobId, TaskId } from '../job.ts';
import { addFiles, tasksOf } from './live-files.ts';
import type {
  JobInformationRow,
  JobRow,
  JobStatesRow,
  RequestRow,
  TaskSearchRow,
  WatchMineRow,
  WatchOrder,
  WatchState,
} from './rows.ts';
import { JobTable, jsonOf, type Sql, Table } from './sql.ts';

/**
 * The result of a poll or pass of a job. `grownAt` is set if one of its live files grew; `stalledAt` stays as it was if
 * it is left out.
 */
export type RunEnd = Pick<JobRow, 'grownAt' | 'refused' | 'failures' | 'error'> & {
  readonly polledAt: number;
  readonly stalledAt?: number | null;
};

/** Tasks are to be found, from now on or as before. */
const SEARCH = `INSERT INTO task_searches (job_id, files) VALUES (?, ?)
  ON CONFLICT (job_id) DO UPDATE SET files = excluded.files, fruitless = 0, hint = NULL`;

const NEXT_REVISION = '(SELECT coalesce(max(revision), 0) + 1 FROM jobs)';

export class Jobs {
  readonly #sql: Sql;
  readonly #table: Table<JobRow>;

  constructor(sql: Sql) {
    this.#sql = sql;
    this.#table = new Table(sql, 'jobs', { results: 'flag', error: 'json' });
  }

  get(jobId: JobId): JobRow | undefined {
    return this.#table.get('WHERE job_id = ?', jobId);
  }

  all(): JobRow[] {
    return this.#table.all('');
  }

  states(): Map<JobId, WatchState> {
    const rows = this.#sql.all<Pick<JobRow, 'jobId' | 'state'>>('SELECT job_id AS jobId, state FROM jobs');
    return new Map(rows.map(({ jobId, state }) => [jobId, state]));
  }

  settled(): JobId[] {
    return this.#ids("WHERE state = 'settled'");
  }

  /** All that were ever ordered. */
  known(): Set<JobId> {
    return new Set(this.#ids(''));
  }

  /** How many are followed because all jobs of the user are. */
  followedByRule(): number {
    return this.#ids("WHERE source = 'mine' AND state IN ('watched', 'ending')").length;
  }

  /** Those that were ordered, or changed their state, since `revision`; all of them since -1. */
  changedSince(revision: number): JobRow[] {
    return this.#table.all('WHERE revision > ?', revision);
  }

  /**
   * Registers a job, or brings a known one to the new order: files are added, none is taken away. Without tasks, those
   * that it has are to be found, and those that are known get the files. Called within a transaction.
   */
  watch({ jobId, tasks, files, results, settleAfterMs, stallAfterMs = null, source }: WatchOrder, now: number): void {
    const order = `
      INSERT INTO jobs (job_id, source, state, results, settle_after_ms, stall_after_ms, watched_at, revision)
      VALUES (@jobId, @source, 'watched', @results, @settleAfterMs, @stallAfterMs, @now, ${NEXT_REVISION})
      ON CONFLICT (job_id) DO UPDATE SET source = @source, state = 'watched', results = @results,
        settle_after_ms = @settleAfterMs, stall_after_ms = coalesce(@stallAfterMs, stall_after_ms), failures = 0, error = NULL, revision = excluded.revision,
        watched_at = CASE WHEN state IN ('watched', 'ending') THEN watched_at ELSE @now END`;
    this.#sql.run(order, { jobId, source, results: Number(results), settleAfterMs, stallAfterMs, now });
    addFiles(this.#sql, jobId, tasks ?? tasksOf(this.#sql, jobId), files);
    if (tasks !== null) this.#sql.run('DELETE FROM task_searches WHERE job_id = ?', jobId);
    else this.#sql.run(SEARCH, jobId, jsonOf(files));
  }

  /** A job that was settled is followed again. */
  resume(jobId: JobId): void {
    const set = `UPDATE jobs SET state = 'watched', failures = 0, error = NULL, revision = ${NEXT_REVISION}
      WHERE job_id = ? AND state = 'settled'`;
    this.#sql.run(set, jobId);
  }

  setState(jobId: JobId, state: WatchState): void {
    const set = `UPDATE jobs SET state = @state, stalled_at = NULL, revision = ${NEXT_REVISION}
      WHERE job_id = @jobId AND state <> @state`;
    this.#sql.run(set, { jobId, state });
  }

  /** A person ended it: that counts, also against the configuration at the next start. */
  unwatch(jobId: JobId, state: 'ending' | 'ended'): void {
    const set = `UPDATE jobs SET state = ?, source = 'command', stalled_at = NULL, revision = ${NEXT_REVISION} WHERE job_id = ?`;
    this.#sql.run(set, state, jobId);
  }

  endRun(jobId: JobId, { stalledAt, ...end }: RunEnd): void {
    const set = `
      UPDATE jobs SET polled_at = @polledAt, grown_at = coalesce(@grownAt, grown_at), refused = refused + @refused,
        failures = @failures, error = @error WHERE job_id = @jobId`;
    this.#sql.run(set, { jobId, ...end, error: jsonOf(end.error) });
    if (stalledAt === undefined) return;
    // The time at which it was first seen stays.
    const stall = `UPDATE jobs SET stalled_at = iif(@stalledAt IS NULL, NULL, coalesce(stalled_at, @stalledAt))
      WHERE job_id = @jobId AND (stalled_at IS NULL) <> (@stalledAt IS NULL)`;
    this.#sql.run(stall, { jobId, stalledAt });
  }

  #ids(where: string): JobId[] {
    return this.#sql.all<Pick<JobRow, 'jobId'>>(`SELECT job_id AS jobId FROM jobs ${where}`).map(({ jobId }) => jobId);
  }
}

/** The searches for tasks that no order names; a job whose order names its tasks has none. */
export class TaskSearches extends JobTable<TaskSearchRow> {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    super(sql, 'task_searches', { files: 'json' });
    this.#sql = sql;
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

/** What the middleware reports of jobs, and how the last request for it went. */
export class JobInformations extends JobTable<JobInformationRow> {
  readonly #sql: Sql;
  readonly #listings: Table<JobStatesRow & { readonly one: 1 }>;

  constructor(sql: Sql) {
    super(sql, 'job_information', { information: 'json' });
    this.#sql = sql;
    this.#listings = new Table(sql, 'job_looks', { error: 'json' });
  }

  /** The same was reported again. */
  setToldAt(jobId: JobId, toldAt: number): void {
    this.#sql.run('UPDATE job_information SET told_at = ? WHERE job_id = ?', toldAt, jobId);
  }

  /** Undefined if there was none. */
  lastListing(): JobStatesRow | undefined {
    return this.#listings.get('');
  }

  saveListing(row: JobStatesRow): void {
    this.#listings.save({ ...row, one: 1 });
  }
}

/** The last request to the job service, as reports and the view show it. */
export function shownJobService(row: JobStatesRow | undefined) {
  const { lookedAt = null, nextLookAt = null, failures = 0, error = null, listed = null } = row ?? {};
  return { lookedAt, nextLookAt, failures, error, listed };
}

/** The rules by which jobs of the user are followed without being named: one of the configuration, one of a command. */
export class WatchMine {
  readonly #sql: Sql;
  readonly #table: Table<WatchMineRow>;

  constructor(sql: Sql) {
    this.#sql = sql;
    this.#table = new Table(sql, 'watch_mine', { include: 'json', exclude: 'json' });
  }

  /** The rule in force: that of a command, else that of the configuration; undefined if there is none. */
  inForce(): WatchMineRow | undefined {
    return this.#table.get("ORDER BY source = 'config'");
  }

  of(source: WatchMineRow['source']): WatchMineRow | undefined {
    return this.#table.get('WHERE source = ?', source);
  }

  save(row: WatchMineRow): void {
    this.#table.save(row);
  }

  remove(source: WatchMineRow['source']): void {
    this.#sql.run('DELETE FROM watch_mine WHERE source = ?', source);
  }
}

/** What commands request of the running agent. The row counts; the wake file only makes it quicker. */
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
