/** Everything in the store added up, for the line of `systemctl status` and for the metrics. */
import type { SqliteDatabase } from './database.ts';

interface Sums {
  readonly failingJobs: number;
  readonly liveFiles: number;
  readonly failingFiles: number;
  readonly generations: number;
  readonly inexactBytes: number;
  readonly refusedEntries: number;
  readonly grownAt: number | null;
  readonly oldestPollAt: number | null;
}

interface StateCount {
  readonly state: string;
  readonly count: number;
}

export class Totals {
  readonly #jobs;
  readonly #results;
  readonly #sums;

  constructor(db: SqliteDatabase) {
    this.#jobs = db.prepare<[], StateCount>('SELECT state, count(*) AS count FROM jobs GROUP BY state');
    this.#results = db.prepare<[], StateCount>('SELECT state, count(*) AS count FROM result_files GROUP BY state');
    this.#sums = db.prepare<[], Sums>(`
      WITH watched AS (SELECT * FROM jobs WHERE state IN ('watched', 'ending')),
        files AS (SELECT * FROM live_files WHERE job_id IN (SELECT job_id FROM watched))
      SELECT (SELECT count(*) FROM watched WHERE error IS NOT NULL) AS failingJobs,
        (SELECT count(*) FROM files) AS liveFiles,
        (SELECT count(*) FROM files WHERE error IS NOT NULL) AS failingFiles,
        (SELECT coalesce(sum(generation - 1), 0) FROM live_files) AS generations,
        (SELECT coalesce(sum(region.value ->> 'length'), 0)
          FROM live_files, json_each(live_files.inexact) AS region) AS inexactBytes,
        (SELECT coalesce(sum(refused), 0) FROM jobs) AS refusedEntries,
        (SELECT max(grown_at) FROM watched) AS grownAt,
        (SELECT min(coalesce(polled_at, watched_at)) FROM watched) AS oldestPollAt`);
  }

  read() {
    const sums = this.#sums.get();
    if (sums === undefined) throw new Error('a query without FROM returns a row');
    return { ...sums, jobs: countsOf(this.#jobs.all()), results: countsOf(this.#results.all()) };
  }
}

const countsOf = (rows: readonly StateCount[]): Record<string, number> =>
  Object.fromEntries(rows.map(({ state, count }) => [state, count]));
