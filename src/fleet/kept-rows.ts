/** The rows of jobs as the owners keep them in the database for whoever comes next, and for those who look. */
import type { JobId } from '../job.ts';
import type { PortableRow, RowKey } from '../store/portable-rows.ts';
import type { FoundRow } from './border.ts';
import type { Database } from './database.ts';
import type { Sql } from './sql.ts';

/** Read at a time: how many there are, the cluster decides. */
const PAGE_ROWS = 5_000;
/** Of what a look at jobs shows, without their results one by one. */
const ALL_BUT_RESULTS = `kind <> 'result_files'`;

type Kept = PortableRow & { readonly row: string };

/** Before all there are. */
const FIRST = { jobId: '', table: '', key: '' };

const COLUMNS = 'job_id AS "jobId", kind AS "table", key, row::text AS row';

export class KeptRows {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** All rows of some jobs, a page at a time: first those of the jobs themselves, which the others refer to. */
  async *ofJobs(jobIds: readonly JobId[]): AsyncGenerator<Kept[], void> {
    const select = `SELECT ${COLUMNS} FROM {s}.rows WHERE job_id = ANY($1)`;
    const { border } = this.#database;
    yield border.rows(await this.#database.query<FoundRow>(`${select} AND kind = 'jobs'`, [jobIds]));
    for (let last: Omit<FoundRow, 'row'> | undefined = FIRST; last !== undefined; ) {
      const page: FoundRow[] = await this.#database.query<FoundRow>(
        `${select} AND kind <> 'jobs' AND (job_id, kind, key) > ($2, $3, $4) ORDER BY job_id, kind, key LIMIT ${PAGE_ROWS}`,
        [jobIds, last.jobId, last.table, last.key],
      );
      yield border.rows(page);
      last = page.length < PAGE_ROWS ? undefined : page.at(-1);
    }
  }

  /** What a look at jobs shows of those that are followed or settled, or of one. */
  async shown(only: JobId | undefined): Promise<Kept[]> {
    const order = `ORDER BY kind <> 'jobs', job_id`;
    if (only !== undefined) {
      const select = `SELECT ${COLUMNS} FROM {s}.rows WHERE job_id = $1 AND (${ALL_BUT_RESULTS} OR row::text LIKE '%"reason":"%') ${order}`;
      return this.#database.border.rows(await this.#database.query<FoundRow>(select, [only]));
    }
    const select = `SELECT ${COLUMNS} FROM {s}.rows WHERE ${ALL_BUT_RESULTS} ${order}`;
    return this.#database.border.rows(await this.#database.query<FoundRow>(select));
  }

  /** Within a fenced transaction. */
  static async write(sql: Sql, rows: readonly PortableRow[]): Promise<void> {
    const kept = rows.filter((one): one is PortableRow & { row: string } => one.row !== null);
    const gone = rows.filter(({ row }) => row === null);
    if (kept.length > 0) {
      await sql.query(
        `INSERT INTO {s}.rows (job_id, kind, key, row)
         SELECT job_id, kind, key, row::json FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS kept (job_id, kind, key, row)
         ON CONFLICT (job_id, kind, key) DO UPDATE SET row = excluded.row`,
        [...keysOf(kept), kept.map(({ row }) => row)],
      );
    }
    if (gone.length > 0) {
      await sql.query(
        `DELETE FROM {s}.rows WHERE (job_id, kind, key) IN (SELECT * FROM unnest($1::text[], $2::text[], $3::text[]))`,
        keysOf(gone),
      );
    }
    const jobs = kept.filter(({ table }) => table === 'jobs');
    if (jobs.length === 0) return;
    await sql.query(
      `UPDATE {s}.jobs SET state = kept.row ->> 'state', source = kept.row ->> 'source'
       FROM unnest($1::text[], $2::json[]) AS kept (job_id, row) WHERE jobs.job_id = kept.job_id
         AND (state, source) IS DISTINCT FROM (kept.row ->> 'state', kept.row ->> 'source')`,
      [jobs.map(({ jobId }) => jobId), jobs.map(({ row }) => row)],
    );
  }

  /** Within a fenced transaction: from now on, what they say of files is of the mirror directory `mirror`, which has none yet. */
  static async begin(sql: Sql, jobIds: readonly JobId[], mirror: string): Promise<void> {
    const kinds = `('live_files', 'result_files', 'result_counts')`;
    await sql.query(`DELETE FROM {s}.rows WHERE job_id = ANY($1) AND kind IN ${kinds}`, [jobIds]);
    await sql.query('UPDATE {s}.jobs SET mirror = $2 WHERE job_id = ANY($1)', [jobIds, mirror]);
  }
}

const keysOf = (rows: readonly RowKey[]) => [
  rows.map(({ jobId }) => jobId),
  rows.map(({ table }) => table),
  rows.map(({ key }) => key),
];
