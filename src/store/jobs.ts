/** The watched jobs: requests and states, what the middleware reports of them, and requests of commands. */

import { ERROR_POLICIES } from '../errors.ts';
import { isOver, type JobId, type TaskId } from '../job.ts';
import { addFiles, tasksOf } from './live-files.ts';
import type {
  JobInformationRow,
  JobRow,
  JobStatesRow,
  RequestRow,
  ServiceRequestRow,
  TaskSearchRow,
  WatchMineRow,
  WatchRequest,
  WatchState,
} from './rows.ts';
import { JobTable, jsonOf, type Sql, Table } from './sql.ts';

/** `grownAt` is set if a live file grew; without `stalledAt`, the stored one stays. */
export type RunEnd = Pick<JobRow, 'grownAt' | 'refused' | 'failures' | 'error'> & {
  readonly polledAt: number;
  readonly stalledAt?: number | null | undefined;
};

const SEARCH = `INSERT INTO task_searches (job_id, files) VALUES (?, ?)
  ON CONFLICT (job_id) DO UPDATE SET files = excluded.files, fruitless = 0, hint = NULL`;

/** The job is not at its end: what was compared before proves nothing about its last state. */
const EARLY = 'UPDATE live_files SET early = 1 WHERE job_id = ? AND early = 0';

/** The job has no last pass: it may have run on since its files were compared. */
const EARLY_IF_FOLLOWED = `${EARLY} AND job_id IN (SELECT job_id FROM jobs WHERE state IN ('watched', 'ending'))`;

/** The job is to be watched: if it is not followed now, what was reported of it counts for the former watch only. */
const FORMER = `UPDATE job_information SET is_former = 1 WHERE job_id = ?
  AND job_id IN (SELECT job_id FROM jobs WHERE state NOT IN ('watched', 'ending'))`;

const NEXT_REVISION = `(SELECT max(coalesce(max(jobs.revision), 0), (SELECT revision FROM forgotten_jobs)) + 1 FROM jobs)`;

export class Jobs extends JobTable<JobRow> {
  constructor(sql: Sql) {
    super(sql, 'jobs', { results: 'flag', error: 'json' });
  }

  states(): Map<JobId, WatchState> {
    const rows = this.sql.all<Pick<JobRow, 'jobId' | 'state'>>('SELECT job_id AS jobId, state FROM jobs');
    return new Map(rows.map(({ jobId, state }) => [jobId, state]));
  }

  settled(): Map<JobId, string | null> {
    const select = `SELECT job_id AS jobId, information ->> '$.startTime.text' AS startTime
      FROM jobs LEFT JOIN job_information USING (job_id) WHERE state = 'settled'`;
    const rows = this.sql.all<{ readonly jobId: JobId; readonly startTime: string | null }>(select);
    return new Map(rows.map(({ jobId, startTime }) => [jobId, startTime]));
  }

  /** All jobs that were ever requested, also forgotten ones. */
  known(): Set<JobId> {
    return new Set(this.#ids('UNION SELECT job_id FROM former_jobs'));
  }

  isForgotten(jobId: JobId): boolean {
    return this.#ids('WHERE false UNION SELECT job_id FROM former_jobs WHERE job_id = ?', jobId).length > 0;
  }

  /** Removes a job with all that is stored of it, except its id and waiting notifications. Called within a transaction. */
  forget(jobId: JobId, now: number): void {
    this.sql.run('UPDATE outbox SET job_id = NULL WHERE job_id = ? AND due_at IS NOT NULL', jobId);
    this.sql.run('DELETE FROM jobs WHERE job_id = ?', jobId);
    this.sql.run('INSERT OR REPLACE INTO former_jobs (job_id, forgotten_at) VALUES (?, ?)', jobId, now);
  }

  /** Jobs that hold a place of the rule. An earlier version also took jobs that were created and never submitted. */
  followedByRule(): number {
    const isUnsubmitted = `SELECT 1 FROM job_information AS last
      WHERE last.job_id = jobs.job_id AND information ->> '$.state' = 'Configuring'`;
    return this.#ids(`WHERE source = 'mine' AND state IN ('watched', 'ending') AND NOT EXISTS (${isUnsubmitted})`)
      .length;
  }

  /** Jobs with a command or a new state since `revision`, the oldest change first; all since -1. */
  changedSince(revision: number): JobRow[] {
    return this.table.all('WHERE revision > ? ORDER BY revision', revision);
  }

  /** Registers or updates a job, within a transaction. Live files are only added; without tasks, tasks are searched. */
  watch(asked: WatchRequest, now: number): void {
    const { jobId, tasks, files, results, settleAfterMs, stallAfterMs = null, seenState = null, source } = asked;
    const request = `
      INSERT INTO jobs (job_id, source, state, results, settle_after_ms, stall_after_ms, seen_state, watched_at, revision)
      VALUES (@jobId, @source, 'watched', @results, @settleAfterMs, @stallAfterMs, @seenState, @now, ${NEXT_REVISION})
      ON CONFLICT (job_id) DO UPDATE SET source = @source, state = 'watched', results = @results,
        settle_after_ms = @settleAfterMs, stall_after_ms = coalesce(@stallAfterMs, stall_after_ms), seen_state = @seenState,
        failures = 0, error = NULL, revision = excluded.revision,
        watched_at = CASE WHEN state IN ('watched', 'ending') THEN watched_at ELSE @now END`;
    this.sql.run(FORMER, jobId);
    this.sql.run(request, { jobId, source, results: Number(results), settleAfterMs, stallAfterMs, seenState, now });
    this.sql.run('DELETE FROM former_jobs WHERE job_id = ?', jobId);
    this.sql.run(EARLY, jobId);
    addFiles(this.sql, jobId, tasks ?? tasksOf(this.sql, jobId), files);
    if (tasks !== null) this.sql.run('DELETE FROM task_searches WHERE job_id = ?', jobId);
    else this.sql.run(SEARCH, jobId, jsonOf(files));
  }

  resume(jobId: JobId): void {
    const set = `UPDATE jobs SET state = 'watched', failures = 0, error = NULL, revision = ${NEXT_REVISION}
      WHERE job_id = ? AND state = 'settled'`;
    this.sql.run(set, jobId);
    this.sql.run(EARLY, jobId);
  }

  setState(jobId: JobId, state: WatchState): void {
    const set = `UPDATE jobs SET state = @state, stalled_at = NULL, revision = ${NEXT_REVISION}
      WHERE job_id = @jobId AND state <> @state`;
    this.sql.run(set, { jobId, state });
  }

  /** Ends a job by a command of the operator, which also overrules the configuration at the next start. */
  unwatch(jobId: JobId, state: 'ending' | 'ended'): void {
    const set = `UPDATE jobs SET state = ?, source = 'command', stalled_at = NULL, revision = ${NEXT_REVISION} WHERE job_id = ?`;
    if (state === 'ended') this.sql.run(EARLY_IF_FOLLOWED, jobId);
    this.sql.run(set, state, jobId);
  }

  endRun(jobId: JobId, { stalledAt, ...end }: RunEnd): void {
    const set = `
      UPDATE jobs SET polled_at = @polledAt, grown_at = coalesce(@grownAt, grown_at), refused = refused + @refused,
        failures = @failures, error = @error WHERE job_id = @jobId`;
    this.sql.run(set, { jobId, ...end, error: jsonOf(end.error) });
    if (stalledAt === undefined) return;
    const stall = `UPDATE jobs SET stalled_at = iif(@stalledAt IS NULL, NULL, coalesce(stalled_at, @stalledAt))
      WHERE job_id = @jobId AND (stalled_at IS NULL) <> (@stalledAt IS NULL)`;
    this.sql.run(stall, { jobId, stalledAt });
  }

  #ids(where: string, ...values: JobId[]): JobId[] {
    const rows = this.sql.all<Pick<JobRow, 'jobId'>>(`SELECT job_id AS jobId FROM jobs ${where}`, ...values);
    return rows.map(({ jobId }) => jobId);
  }
}

/** The searches for tasks. A job whose request names its tasks has none. */
export class TaskSearches extends JobTable<TaskSearchRow> {
  constructor(sql: Sql) {
    super(sql, 'task_searches', { files: 'json' });
  }

  knownTasks(jobId: JobId): TaskId[] {
    return tasksOf(this.sql, jobId);
  }

  /** Adds the live files of found tasks. Called within a transaction. */
  addTasks({ jobId, files }: TaskSearchRow, tasks: readonly TaskId[]): void {
    addFiles(this.sql, jobId, tasks, files);
  }
}

export class JobInformations extends JobTable<JobInformationRow> {
  readonly #listings: Table<JobStatesRow & { readonly one: 1 }>;

  constructor(sql: Sql) {
    super(sql, 'job_information', { information: 'json', isFormer: 'flag' });
    this.#listings = new Table(sql, 'job_service_requests', { error: 'json' });
  }

  /** Stores a report of now. */
  override save(report: Omit<JobInformationRow, 'isFormer'>): void {
    super.save({ ...report, isFormer: false });
  }

  /** The reported job states of these jobs; without a report, none. */
  states(jobIds: readonly JobId[]): Map<JobId, string | null> {
    const select = `SELECT job_id AS jobId, information ->> '$.state' AS state FROM job_information
      WHERE job_id IN (SELECT value FROM json_each(?))`;
    const rows = this.sql.all<{ readonly jobId: JobId; readonly state: string | null }>(select, JSON.stringify(jobIds));
    return new Map(rows.map(({ jobId, state }) => [jobId, state]));
  }

  lastListing(): JobStatesRow | undefined {
    return this.#listings.get('');
  }

  saveListing(row: JobStatesRow): void {
    this.#listings.save({ ...row, one: 1 });
  }
}

export function shownJobService(row: JobStatesRow | undefined) {
  const { requestedAt = null, nextRequestAt = null, failures = 0, error = null, listed = null } = row ?? {};
  return { requestedAt, nextRequestAt, failures, error, listed };
}

export type ShownSearch = ReturnType<typeof shownSearch>;

/** The tasks of a job: how many are found, and whether others are searched. */
export function shownSearch(job: JobRow, search: TaskSearchRow | undefined, found: number) {
  const isSearched = !isOver(job) && search !== undefined;
  return {
    found,
    searching: isSearched && (found === 0 || search.nextSearchAt !== null),
    hint: isSearched ? search.hint : null,
  };
}

/** The rules for jobs of the user: one of the configuration, one of a command. */
export class WatchMine {
  readonly #sql: Sql;
  readonly #table: Table<WatchMineRow>;

  constructor(sql: Sql) {
    this.#sql = sql;
    this.#table = new Table(sql, 'watch_mine', { include: 'json', exclude: 'json' });
  }

  /** The rule of a command, else that of the configuration. */
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

const KINDS = {
  pass: "'sync', 'unwatch'",
  forget: "'forget', 'forget-files'",
  service: "'report', 'verify', 'verify-complete'",
  follow: "'follow'",
};

/** A command renews its request at this interval. */
export const RENEWED_MS = 5_000;
/** After this time without that, it has ended. */
const UNRENEWED_MS = 60_000;

/** Requests of commands to the process that serves the state. The wake file only makes it read them sooner. */
export class Requests {
  readonly #sql: Sql;
  readonly #table: Table<RequestRow | ServiceRequestRow>;

  constructor(sql: Sql) {
    this.#sql = sql;
    this.#table = new Table(sql, 'requests', {});
  }

  add(jobId: JobId | null, kind: RequestRow['kind'] | ServiceRequestRow['kind'], now: number): number {
    const insert = 'INSERT INTO requests (job_id, kind, made_at) VALUES (?, ?, ?)';
    return Number(this.#sql.run(insert, jobId, kind, now).lastInsertRowid);
  }

  get(requestId: number): RequestRow | ServiceRequestRow | undefined {
    return this.#table.get('WHERE request_id = ?', requestId);
  }

  open<Work extends keyof typeof KINDS>(work: Work): (Work extends 'service' ? ServiceRequestRow : RequestRow)[] {
    const open = this.#table.all(`WHERE answer IS NULL AND kind IN (${KINDS[work]}) ORDER BY request_id`);
    return open as (Work extends 'service' ? ServiceRequestRow : RequestRow)[];
  }

  /** Whether a command that still waits works on a job: what a killed one requested is left to an agent. */
  isWorkedOn(jobId: JobId, now: number): boolean {
    const open = (['pass', 'follow', 'service'] as const).flatMap((work) => this.open(work));
    return open.some((request) => request.jobId === jobId && Math.abs(now - request.madeAt) <= UNRENEWED_MS);
  }

  answer(requestId: number, answer: string): void {
    this.#sql.run('UPDATE requests SET answer = ? WHERE request_id = ?', answer, requestId);
  }

  remove(requestId: number): void {
    this.#sql.run('DELETE FROM requests WHERE request_id = ?', requestId);
  }

  /** False if it is gone. */
  renew(requestId: number, now: number): boolean {
    return this.#sql.run('UPDATE requests SET made_at = ? WHERE request_id = ?', now, requestId).changes > 0;
  }

  /** Removes requests whose command has ended; passes and removals are executed anyway. */
  forgetUnrenewed(now: number): void {
    const remove = `DELETE FROM requests WHERE answer IS NULL AND kind IN (${KINDS.service}, ${KINDS.follow})`;
    this.#sql.run(`${remove} AND abs(made_at - ?) > ?`, now, UNRENEWED_MS);
  }

  forgetAnswered(before: number): void {
    this.#sql.run('DELETE FROM requests WHERE answer IS NOT NULL AND made_at < ?', before);
  }
}

/** The last poll that the service answered, in milliseconds since 1970: the row has the last attempt. */
export function answeredAt({ polledAt, error }: Pick<JobRow, 'polledAt' | 'error'>): number | null {
  const isAway = polledAt !== null && error !== null && ERROR_POLICIES[error.code].isOfService;
  return isAway ? Math.min(polledAt, error.since) : polledAt;
}
