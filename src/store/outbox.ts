/**
 * The notifications: how far each job and live file was read for them, and the open deliveries. Events are committed
 * together with these positions, so a kill neither loses nor repeats one.
 */
import type { JobId, LiveFileKey } from '../job.ts';
import type { NotifyEvent } from '../notification.ts';
import type { LiveFileRow, WatchState } from './rows.ts';
import { JobTable, type Sql, Table } from './sql.ts';

export interface NotifiedJobRow {
  readonly jobId: JobId;
  /** The furthest that was reported of its run. */
  readonly jobState: string | null;
  /** The start of that run, as reported. */
  readonly startedAt: string | null;
  readonly watchState: WatchState;
  readonly stalledAt: number | null;
  /** Whether its live files are read; how far is in their rows. A file without a row was not started. */
  readonly hasFiles: boolean;
}

export interface ReadPositionRow extends LiveFileKey {
  readonly jobId: JobId;
  readonly generation: number;
  readonly position: number;
  /** Lines before it; null where they were not counted. */
  readonly lines: number | null;
}

export interface DeliveryRow {
  readonly deliveryId: string;
  /** Null for an event of the agent itself, and of a job that was removed. */
  readonly jobId: JobId | null;
  /** Digest of the text of the rule. */
  readonly rule: string;
  readonly event: NotifyEvent;
  readonly madeAt: number;
  /** Null: given up. */
  readonly dueAt: number | null;
  readonly attempts: number;
  readonly lastError: string | null;
}

/** Maximum waiting deliveries of one rule and job; further events are counted in the last one. */
export const MAX_WAITING = 10;

/** No pause is longer: one that a receiver asks for is limited to it. Further ahead, the clock was set back. */
const MAX_PAUSE_MS = 60 * 60_000;
const IS_DUE = `due_at <= ? OR due_at > ? + ${MAX_PAUSE_MS}`;

export class Outbox {
  readonly #sql: Sql;
  readonly jobs: JobTable<NotifiedJobRow>;
  readonly #positions: Table<ReadPositionRow>;
  readonly #deliveries: Table<DeliveryRow>;

  constructor(sql: Sql) {
    this.#sql = sql;
    this.jobs = new JobTable<NotifiedJobRow>(sql, 'notified_jobs', { hasFiles: 'flag' });
    this.#positions = new Table<ReadPositionRow>(sql, 'read_positions', {});
    this.#deliveries = new Table<DeliveryRow>(sql, 'outbox', { event: 'json' });
  }

  changedJobs(wantsFiles: boolean): JobId[] {
    const select = `SELECT jobs.job_id AS jobId FROM jobs
      LEFT JOIN notified_jobs AS before USING (job_id) LEFT JOIN job_information USING (job_id)
      WHERE before.job_id IS NULL OR before.watch_state <> jobs.state OR before.has_files < ?
        OR (jobs.state IN ('watched', 'ending')
          AND (before.stalled_at IS NOT jobs.stalled_at OR before.job_state IS NOT (information ->> 'state')
            OR before.started_at IS NOT (information ->> '$.startTime.text')))`;
    return this.#sql.all<{ readonly jobId: JobId }>(select, Number(wantsFiles)).map(({ jobId }) => jobId);
  }

  unreadFiles(): (LiveFileKey & { readonly jobId: JobId })[] {
    const select = `SELECT job_id AS jobId, task_id AS taskId, file FROM live_files
      JOIN notified_jobs USING (job_id) LEFT JOIN read_positions AS before USING (job_id, task_id, file)
      WHERE has_files = 1 AND (live_files.position > coalesce(before.position, 0)
        OR live_files.generation > coalesce(before.generation, 1))`;
    return this.#sql.all(select);
  }

  position(jobId: JobId, { taskId, file }: LiveFileKey): ReadPositionRow | undefined {
    return this.#positions.get('WHERE job_id = ? AND task_id = ? AND file = ?', jobId, taskId, file);
  }

  savePosition(row: ReadPositionRow): void {
    this.#positions.save(row);
  }

  /** Marks the current content as read, without counting lines. */
  skip({ jobId, taskId, file, generation, position }: LiveFileRow): void {
    if (generation > 1 || position > 0)
      this.#positions.save({ jobId, taskId, file, generation, position, lines: position === 0 ? 0 : null });
  }

  /**
   * Adds deliveries; above `MAX_WAITING` of one rule, job and type, the newest one counts the others. One that was
   * attempted may have been received, so it counts no other: one more waits as long as these.
   */
  add(deliveries: readonly DeliveryRow[]): void {
    const kindOf = ({ rule, jobId, event }: DeliveryRow) => JSON.stringify([rule, jobId, event.type]);
    for (const kind of new Set(deliveries.map(kindOf))) {
      const waiting = this.#deliveries.all(
        `WHERE rule = ? AND job_id IS ? AND event ->> 'type' = ? AND due_at IS NOT NULL ORDER BY made_at, rowid`,
        ...(JSON.parse(kind) as readonly (string | null)[]),
      );
      const fresh = deliveries.filter((delivery) => kindOf(delivery) === kind);
      const newest = waiting.findLast(({ attempts }) => attempts === 0);
      const room = Math.max(newest === undefined ? 1 : 0, MAX_WAITING - waiting.length);
      const dueAt = waiting.length < MAX_WAITING ? 0 : Math.max(...waiting.map((each) => each.dueAt ?? 0));
      const added = fresh.slice(0, room).map((each) => ({ ...each, dueAt: Math.max(each.dueAt ?? 0, dueAt) }));
      const count = fresh.slice(added.length).reduce((sum, { event }) => sum + event.count, 0);
      for (const delivery of added) this.#deliveries.save(delivery);
      const last = added.at(-1) ?? newest;
      if (count > 0 && last !== undefined)
        this.#deliveries.save({ ...last, event: { ...last.event, count: last.event.count + count } });
    }
  }

  /** The jobs with waiting deliveries of these rules. */
  waitingJobs(rules: readonly string[]): JobId[] {
    const select = `SELECT DISTINCT job_id AS jobId FROM outbox WHERE job_id IS NOT NULL AND due_at IS NOT NULL
      AND rule IN (SELECT value FROM json_each(?))`;
    return this.#sql.all<{ readonly jobId: JobId }>(select, JSON.stringify(rules)).map(({ jobId }) => jobId);
  }

  dueRules(now: number): string[] {
    const select = `SELECT DISTINCT rule FROM outbox WHERE ${IS_DUE}`;
    return this.#sql.all<{ readonly rule: string }>(select, now, now).map(({ rule }) => rule);
  }

  due(rule: string, now: number, limit: number): DeliveryRow[] {
    return this.#deliveries.all(
      `WHERE (${IS_DUE}) AND rule = ? ORDER BY made_at, rowid LIMIT ?`,
      now,
      now,
      rule,
      limit,
    );
  }

  all(): DeliveryRow[] {
    return this.#deliveries.all('ORDER BY made_at, rowid');
  }

  get({ deliveryId }: DeliveryRow): DeliveryRow | undefined {
    return this.#deliveries.get('WHERE delivery_id = ?', deliveryId);
  }

  save(row: DeliveryRow): void {
    this.#deliveries.save(row);
  }

  remove({ deliveryId }: DeliveryRow): void {
    this.#sql.run('DELETE FROM outbox WHERE delivery_id = ?', deliveryId);
  }

  /** Makes waiting deliveries due now: their target may work again. */
  tryAgain(now: number): void {
    this.#sql.run('UPDATE outbox SET due_at = @now WHERE due_at > @now', { now });
  }

  /** Removes deliveries of rules that no configuration has. */
  forgetOthers(rules: readonly string[]): void {
    this.#sql.run('DELETE FROM outbox WHERE rule NOT IN (SELECT value FROM json_each(?))', JSON.stringify(rules));
  }

  forgetGivenUp(before: number): void {
    this.#sql.run('DELETE FROM outbox WHERE due_at IS NULL AND made_at < ?', before);
  }

  counts(): { readonly waiting: number; readonly givenUp: number; readonly oldestAt: number | null } {
    return this.#sql.sums(`SELECT count(due_at) AS waiting, count(*) - count(due_at) AS givenUp,
      min(made_at) FILTER (WHERE due_at IS NOT NULL) AS oldestAt FROM outbox`);
  }
}
