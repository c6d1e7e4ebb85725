/**
 * What one owner of a job hands to the next: its rows, which go from the database into this agent's store when a job is
 * taken, and back, as they change, in transactions that only its owner can make.
 *
 * The rows of a step of a new generation are written before the step is taken; all others may be some seconds old: then
 * the mirror has more bytes than they promise, and these are compared with the remote file.
 */
import type { JobId } from '../job.ts';
import { slicesOf } from '../slices.ts';
import type { PortableRow, PortableTable, RowChange, RowChanges, RowKey } from '../store/portable-rows.ts';
import type { LiveFileRow } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import { type FoundRow, NOT_STORED } from './border.ts';
import type { Claims, TakenJob } from './claims.ts';
import type { Database } from './database.ts';
import { idsOf, type LeasedJob } from './register.ts';
import type { Sql } from './tables.ts';

export interface HandoverOptions {
  readonly store: Store;
  readonly database: Database;
  readonly claims: Pick<Claims, 'fenced'>;
  /** Of the mirror directory: agents that have the same one see the same files. */
  readonly mirror: string;
  readonly monotonic: () => number;
  /** Of the machine; null where what was written on it need not be there. */
  readonly bootId: string | null;
  /** Called with jobs that another agent owns. */
  readonly onLost: (jobs: readonly LeasedJob[]) => void;
}

/** Rows of one transaction, here and there. */
const ROWS_AT_ONCE = 1_000;
/** That are forgotten in one transaction, which is one flush of the disk. */
const JOBS_AT_ONCE = 20;
const ALL_ROWS = Number.MAX_SAFE_INTEGER;
/** What is written behind a position stands there without being known as written: another boot than any. */
const NO_BOOT = 'elsewhere';
/** Columns that change with each poll, by their tables. */
const TIMES: Partial<Record<PortableTable, string>> = { jobs: 'polled_at', job_information: 'told_at' };
/** Rows that differ in these columns alone are written together, once in this time. */
const MAX_AGE_OF_TIMES_MS = 60 * 60_000;
const LOST_KEY = 'another agent may have requested a key: if there is one, it expires after a day';

export class Handover {
  readonly #options: HandoverOptions;
  readonly #changes: RowChanges;
  readonly #kept: KeptRows;
  /** Rows that the database has as they will be here in a moment. */
  readonly #ahead = new Set<string>();
  /** Rows as they were written, without their times. */
  readonly #written = new Map<string, string>();
  /** Rows that differ from these in their times alone. */
  readonly #late = new Map<string, RowKey>();
  #timesWrittenAt: number;

  constructor(options: HandoverOptions, changes: RowChanges) {
    this.#options = options;
    this.#changes = changes;
    this.#kept = new KeptRows(options.database);
    this.#timesWrittenAt = options.monotonic();
  }

  /** Brings the rows of jobs that were taken into the store, unless they are there under this very attempt. */
  async bring(jobs: readonly TakenJob[]): Promise<void> {
    const { store, mirror } = this.#options;
    const here = new Map(store.fleetLeases.all().map(({ jobId, attempt }) => [jobId, attempt]));
    const missing = jobs.filter(({ jobId, attempt }) => here.get(jobId) !== attempt);
    if (missing.length === 0) return;
    const same = new Set(missing.filter((job) => job.mirror === mirror).map(({ jobId }) => jobId));
    await this.forgetAll(idsOf(missing));
    for await (const page of this.#kept.ofJobs(idsOf(missing))) {
      for (const rows of slicesOf(page, ROWS_AT_ONCE)) {
        store.transaction(() => this.#take(rows, same));
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    for (const jobId of same) this.#changes.forget(jobId);
    for (const { jobId } of missing) store.leases.loseAsked(LOST_KEY, jobId);
    const elsewhere = missing.filter(({ jobId }) => !same.has(jobId));
    if (elsewhere.length > 0) {
      await this.#writing(elsewhere, ALL_ROWS, (sql, owned) => KeptRows.begin(sql, idsOf(owned), mirror));
    }
    store.transaction(() => {
      for (const job of missing) this.noteTaken(job);
    });
  }

  /** The rows here are those of this attempt: a start of this agent goes on with them. */
  noteTaken(job: LeasedJob): void {
    const { store } = this.#options;
    if (store.jobs.get(job.jobId) !== undefined) store.fleetLeases.save(job);
  }

  /**
   * Writes what changed of these jobs, some of it; whether more is left. A poll that found nothing costs the database
   * nothing: its time is in a row that differs in that alone.
   */
  async write(jobs: readonly LeasedJob[]): Promise<boolean> {
    const byId = new Map(jobs.map((job) => [job.jobId, job]));
    this.#setAside(this.#changes.jobs().filter((jobId) => byId.has(jobId)));
    const changed = this.#changes.jobs().flatMap((jobId) => byId.get(jobId) ?? []);
    const isMore = changed.length > 0 && (await this.#writing(changed, ROWS_AT_ONCE)).written === ROWS_AT_ONCE;
    if (!isMore && this.#options.monotonic() - this.#timesWrittenAt > MAX_AGE_OF_TIMES_MS) await this.#writeTimes(jobs);
    return isMore;
  }

  /**
   * Writes all that changed of these jobs, times too, and does `work` in the same transaction; returns those that were
   * owned.
   */
  async writeAnd(
    jobs: readonly LeasedJob[],
    work: (sql: Sql, owned: readonly LeasedJob[]) => Promise<void>,
  ): Promise<LeasedJob[]> {
    // What is much is written before, for the transaction keeps others waiting.
    while (await this.write(jobs));
    return (await this.#writing(jobs, ALL_ROWS, work)).owned;
  }

  /** Resolves when the next owner would go on from this row; false if the job is not owned. */
  async fence(job: LeasedJob, row: LiveFileRow): Promise<boolean> {
    const portable = this.#outward(this.#options.store.liveFiles.portable(row));
    const name = nameOf(portable);
    this.#ahead.add(name);
    try {
      const owned = await this.#fenced([job], (sql) => KeptRows.write(sql, [portable]));
      return owned.length > 0;
    } finally {
      // When it is in the store, too.
      setImmediate(() => this.#ahead.delete(name));
    }
  }

  /** Removes all rows of these jobs from this agent: it does not own them any more. */
  async forgetAll(jobIds: readonly JobId[]): Promise<void> {
    const { store } = this.#options;
    for (const slice of slicesOf(jobIds, JOBS_AT_ONCE)) {
      store.transaction(() => {
        for (const jobId of slice) {
          store.portableRows.forget(jobId);
          this.#changes.forget(jobId);
          for (const table of Object.keys(TIMES) as PortableTable[]) {
            this.#written.delete(nameOf({ jobId, table, key: '[]' }));
            this.#late.delete(nameOf({ jobId, table, key: '[]' }));
          }
        }
      });
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async #fenced(
    jobs: readonly LeasedJob[],
    work: (sql: Sql, owned: LeasedJob[]) => Promise<void>,
  ): Promise<LeasedJob[]> {
    const { claims, onLost } = this.#options;
    const owned = await claims.fenced(jobs, work);
    if (owned.length < jobs.length) onLost(jobs.filter((job) => !owned.includes(job)));
    return owned;
  }

  #take(rows: readonly PortableRow[], same: ReadonlySet<JobId>): void {
    const { store, database } = this.#options;
    for (const isSameDirectory of [true, false]) {
      const some = rows.filter(({ jobId }) => same.has(jobId) === isSameDirectory);
      const refused = store.portableRows.take(some, { isSameDirectory, hasResults: true });
      for (const row of refused) database.border.refuse(row, NOT_STORED);
    }
  }

  /** Does `work`, and writes what changed, in one fenced transaction. */
  async #writing(
    jobs: readonly LeasedJob[],
    max: number,
    work: (sql: Sql, owned: readonly LeasedJob[]) => Promise<void> = async () => {},
  ) {
    const { store } = this.#options;
    let changes: readonly RowChange[] = [];
    let rows: readonly PortableRow[] = [];
    const owned = await this.#fenced(jobs, async (sql, fenced) => {
      await work(sql, fenced);
      changes = this.#changesOf(fenced, max);
      const keys = [...changes, ...(max === ALL_ROWS ? this.#lateOf(fenced) : [])];
      const once = new Map(keys.map((key) => [nameOf(key), key]));
      rows = [...once.values()].map((key) => this.#outward(store.portableRows.read(key)));
      // Until the database has them, nothing is known to be written.
      for (const row of rows) this.#written.delete(nameOf(row));
      await KeptRows.write(sql, rows);
    });
    for (const row of rows) this.#noteWritten(row);
    // What was changed meanwhile has another number by now.
    store.transaction(() => this.#changes.done(changes));
    return { owned, written: changes.length };
  }

  #changesOf(jobs: readonly LeasedJob[], max: number): RowChange[] {
    const changes: RowChange[] = [];
    for (const { jobId } of jobs) {
      if (changes.length >= max) break;
      changes.push(...this.#changes.ofJob(jobId, max - changes.length));
    }
    return changes.filter((change) => !this.#ahead.has(nameOf(change)));
  }

  /** Changes of times alone wait for the other times. */
  #setAside(jobIds: readonly JobId[]): void {
    const { store } = this.#options;
    const late = jobIds
      .flatMap((jobId) => this.#changes.ofJob(jobId, ROWS_AT_ONCE))
      .filter((change) => {
        const written = TIMES[change.table] === undefined ? undefined : this.#written.get(nameOf(change));
        return written !== undefined && written === withoutTime(store.portableRows.read(change));
      });
    if (late.length === 0) return;
    for (const { jobId, table, key } of late) this.#late.set(nameOf({ jobId, table, key }), { jobId, table, key });
    store.transaction(() => this.#changes.done(late));
  }

  async #writeTimes(jobs: readonly LeasedJob[]): Promise<void> {
    this.#timesWrittenAt = this.#options.monotonic();
    const late = new Set([...this.#late.values()].map(({ jobId }) => jobId));
    const waiting = jobs.filter(({ jobId }) => late.has(jobId));
    for (const slice of slicesOf(waiting, ROWS_AT_ONCE)) await this.#writing(slice, ALL_ROWS);
  }

  #lateOf(jobs: readonly LeasedJob[]): RowKey[] {
    const ids = new Set(idsOf(jobs));
    return [...this.#late.values()].filter(({ jobId }) => ids.has(jobId));
  }

  #noteWritten(row: PortableRow): void {
    const text = withoutTime(row);
    this.#late.delete(nameOf(row));
    if (text === undefined) this.#written.delete(nameOf(row));
    else this.#written.set(nameOf(row), text);
  }

  /** As it is for others: whatever comes behind the position is not known as written, but on the same boot. */
  #outward(one: PortableRow): PortableRow {
    if (one.table !== 'live_files' || one.row === null) return one;
    const row = JSON.parse(one.row) as object;
    return { ...one, row: JSON.stringify({ ...row, boot_id: this.#options.bootId ?? NO_BOOT }) };
  }
}

function withoutTime({ table, row }: PortableRow): string | undefined {
  const time = TIMES[table];
  if (time === undefined || row === null) return undefined;
  return JSON.stringify({ ...(JSON.parse(row) as object), [time]: null });
}

const nameOf = ({ jobId, table, key }: Pick<PortableRow, 'jobId' | 'table' | 'key'>) => `${jobId} ${table} ${key}`;

/** Read at a time: how many there are, the cluster decides. */
const PAGE_ROWS = 5_000;
/** What a display of jobs needs, without their results one by one. */
const ALL_BUT_RESULTS = `kind <> 'result_files'`;

type Kept = PortableRow & { readonly row: string };

/** Before all there are. */
const FIRST = { jobId: '', table: '', key: '' };

const COLUMNS = 'job_id AS "jobId", kind AS "table", key, row::text AS row';

/** The rows of jobs as their owners store them in the database, for the next owner and for displays. */
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

  /** What a display needs of the followed and settled jobs, or of one job. */
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
      [idsOf(jobs), jobs.map(({ row }) => row)],
    );
  }

  /** Within a fenced transaction: assigns the rows of files to the mirror directory `mirror`, which has no file yet. */
  static async begin(sql: Sql, jobIds: readonly JobId[], mirror: string): Promise<void> {
    const kinds = `('live_files', 'result_files', 'result_counts')`;
    await sql.query(`DELETE FROM {s}.rows WHERE job_id = ANY($1) AND kind IN ${kinds}`, [jobIds]);
    await sql.query('UPDATE {s}.jobs SET mirror = $2 WHERE job_id = ANY($1)', [jobIds, mirror]);
  }
}

const keysOf = (rows: readonly RowKey[]) => [idsOf(rows), rows.map(({ table }) => table), rows.map(({ key }) => key)];
