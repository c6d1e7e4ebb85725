/** What the store holds, added up: all of it for the metrics, and the little that `systemctl status` shows. */
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

/** What is said of the watched jobs every few seconds. */
type Watched = Pick<Sums, 'failingJobs' | 'grownAt'>;

interface StateCount {
  readonly state: string;
  readonly count: number;
}

export class Totals {
  readonly #jobs;
  readonly #results;
  readonly #sums;
  readonly #watched;

  constructor(db: SqliteDatabase) {
    this.#jobs = db.prepare<[], StateCount>('SELECT state, count(*) AS count FROM jobs GROUP BY state');
    this.#results = db.prepare<[], StateCount>(
      'SELECT state, sum(kept + unkept) AS count FROM result_counts GROUP BY state HAVING count > 0',
    );
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
    this.#watched = db.prepare<[], Watched>(`
      SELECT count(error) AS failingJobs, max(grown_at) AS grownAt FROM jobs WHERE state IN ('watched', 'ending')`);
  }

  /** Takes tens of milliseconds when thousands of jobs are watched. */
  read() {
    const sums = rowOf(this.#sums.get());
    return { ...sums, jobs: countsOf(this.#jobs.all()), results: countsOf(this.#results.all()) };
  }

  /** Takes about a millisecond then. */
  watched(): Watched {
    return rowOf(this.#watched.get());
  }
}

/** A query that adds up always has a row. */
function rowOf<Row>(row: Row | undefined): Row {
  if (row === undefined) throw new Error('a sum has a row');
  return row;
}

const countsOf = (rows: readonly StateCount[]): Record<string, number> =>
  Object.fromEntries(rows.map(({ state, count }) => [state, count]));
