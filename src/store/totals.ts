/** What the store holds, added up: all of it for the metrics, and the little that `systemctl status` shows. */
import type { JobId } from '../job.ts';
import type { StoredError } from './rows.ts';
import type { Sql } from './sql.ts';

export interface LiveSums {
  readonly tasks: number;
  readonly bytes: number;
  readonly grownAt: number | null;
  readonly error: StoredError | null;
}

interface WatchedSums {
  readonly failingJobs: number;
  readonly stalledJobs: number;
  readonly grownAt: number | null;
  /** Of those that are polled: the last pass of an unwatched job may download its results for hours. */
  readonly oldestPollAt: number | null;
}

interface Sums {
  readonly liveFiles: number;
  readonly failingFiles: number;
  readonly generations: number;
  readonly refusedEntries: number;
  readonly deliveriesWaiting: number;
  readonly deliveriesGivenUp: number;
}

export class Totals {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Takes tens of milliseconds when thousands of jobs are watched. */
  read() {
    const sums = this.#sql.sums<Sums>(`
      WITH files AS (
        SELECT * FROM live_files WHERE job_id IN (SELECT job_id FROM jobs WHERE state IN ('watched', 'ending')))
      SELECT (SELECT count(*) FROM files) AS liveFiles,
        (SELECT count(*) FROM files WHERE error IS NOT NULL) AS failingFiles,
        (SELECT coalesce(sum(generation - 1), 0) FROM live_files) AS generations,
        (SELECT coalesce(sum(refused), 0) FROM jobs) AS refusedEntries,
        (SELECT count(due_at) FROM outbox) AS deliveriesWaiting,
        (SELECT count(*) - count(due_at) FROM outbox) AS deliveriesGivenUp`);
    const jobs = this.#counts('SELECT state, count(*) AS count FROM jobs GROUP BY state');
    const results = this.#counts(
      'SELECT state, sum(kept + without_row) AS count FROM result_counts GROUP BY state HAVING count > 0',
    );
    return { ...this.watched(), ...sums, jobs, results };
  }

  /** Totals of the watched jobs for the log, every few seconds; takes about a millisecond. */
  watched(): WatchedSums {
    return this.#sql.sums(`
      SELECT count(error) AS failingJobs, count(stalled_at) AS stalledJobs, max(grown_at) AS grownAt,
        min(coalesce(polled_at, watched_at)) FILTER (WHERE state = 'watched') AS oldestPollAt
      FROM jobs WHERE state IN ('watched', 'ending')`);
  }

  /** The live files of every job, or of one. Takes about a millisecond for a thousand of them. */
  liveByJob(...only: JobId[]): Map<JobId, LiveSums> {
    const rows = this.#sql.all<LiveSums & { readonly jobId: JobId; readonly firstError: string | null }>(
      `
      SELECT job_id AS jobId, count(DISTINCT task_id) AS tasks, sum(position) AS bytes, max(grown_at) AS grownAt,
        min(error) AS firstError
      FROM live_files ${only.length === 0 ? '' : 'WHERE job_id = ?'} GROUP BY job_id`,
      ...only,
    );
    return new Map(
      rows.map(({ jobId, firstError, ...sums }) => [
        jobId,
        { ...sums, error: firstError === null ? null : (JSON.parse(firstError) as StoredError) },
      ]),
    );
  }

  #counts(sql: string): Record<string, number> {
    const rows = this.#sql.all<{ readonly state: string; readonly count: number }>(sql);
    return Object.fromEntries(rows.map(({ state, count }) => [state, count]));
  }
}
