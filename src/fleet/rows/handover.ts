/**
 * The rows of a job that one owner hands to the next. They are copied from the database into the agent's store when a
 * job is acquired, and back when they change, in transactions that only the owner can commit. The rows of a step of a
 * new generation are written before the step. All others may be some seconds old: then the mirror has more bytes than
 * they record, and the next owner compares these with the remote file.
 */
import type { JobId } from '../../job.ts';
import { slicesOf } from '../../slices.ts';
import type { PortableRow, RowChange, RowChanges, RowKey } from '../../store/portable-rows.ts';
import type { LiveFileRow } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import { idsOf, type LeasedJob, SEEN } from '../agents/agents.ts';
import type { Database } from '../database/database.ts';
import type { Queries } from '../database/tables.ts';
import type { Claims, TakenJob } from '../owners/claims.ts';
import { type FoundRow, fleetKey, NOT_STORED } from './border.ts';

interface HandoverOptions {
  readonly store: Store;
  readonly database: Database;
  readonly claims: { readonly fenced: Claims['fenced'] };
  /** Id of the mirror directory: the same for agents that see the same files. */
  readonly mirror: string;
  readonly onLost: (jobs: readonly LeasedJob[]) => void;
}

export const ROWS_AT_ONCE = 1_000;
/** Maximum jobs removed in one transaction, which is one flush of the disk. */
const JOBS_AT_ONCE = 20;
const ALL_ROWS = Number.MAX_SAFE_INTEGER;
/** Their times alone are no change; the next owner gets the last ones. */
const TIMED_TABLES = ['jobs', 'job_information'] as const;
const LOST_KEY = 'another agent may have requested a key: if there is one, it expires after a day';

export class Handover {
  readonly #options: HandoverOptions;
  readonly #changes: RowChanges;
  /** Rows that the database got before the store. */
  readonly #ahead = new Set<string>();
  constructor(options: HandoverOptions, changes: RowChanges) {
    this.#options = options;
    this.#changes = changes;
  }

  /** Copies the rows of acquired jobs into the store, unless they are there with this fencing token. */
  async bring(jobs: readonly TakenJob[]): Promise<void> {
    const { store, database, mirror } = this.#options;
    const here = new Map(store.fleetLeases.all().map(({ jobId, attempt }) => [jobId, attempt]));
    const isHere = ({ jobId, attempt }: TakenJob) => here.get(jobId) === attempt;
    // After a kill, it is unknown which of their changes the database has.
    this.writeAgain(jobs.filter(isHere));
    const missing = jobs.filter((job) => !isHere(job));
    if (missing.length === 0) return;
    await this.forgetAll(idsOf(missing));
    for await (const page of rowsOfJobs(database, idsOf(missing))) {
      for (const rows of slicesOf(page, ROWS_AT_ONCE)) {
        const refused = store.transaction(() => store.portableRows.take(rows));
        for (const row of refused) database.border.refuse(row, NOT_STORED);
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    const elsewhere = missing.filter((job) => job.mirror !== mirror);
    store.transaction(() => {
      for (const { jobId } of missing) this.#changes.forget(jobId);
      for (const { jobId } of missing) store.leases.loseAsked(LOST_KEY, jobId);
      for (const { jobId } of elsewhere) store.portableRows.withoutFiles(jobId);
    });
    if (elsewhere.length > 0) {
      const set = 'UPDATE {s}.jobs SET mirror = $2 WHERE job_id = ANY($1)';
      await this.#writing(
        elsewhere,
        ALL_ROWS,
        async (sql, owned) => void (await sql.query(set, [idsOf(owned), mirror])),
      );
    }
    store.transaction(() => {
      for (const job of missing) this.noteTaken(job);
    });
  }

  /** Writes all rows of these jobs with the next changes: it is unknown which of them the database has. */
  writeAgain(jobs: readonly LeasedJob[]): void {
    for (const { jobId } of jobs) this.#changes.addAll(jobId);
  }

  /** Records the fencing token of the rows here, so that a restart of this agent continues with them. */
  noteTaken(job: LeasedJob): void {
    const { store } = this.#options;
    if (store.jobs.get(job.jobId) !== undefined) store.fleetLeases.save(job);
  }

  /** Writes the changed rows of these jobs, some at a time. */
  async write(jobs: readonly LeasedJob[]): Promise<void> {
    const byId = new Map(jobs.map((job) => [job.jobId, job]));
    for (let written = ROWS_AT_ONCE; written === ROWS_AT_ONCE; ) {
      const changed = this.#changes.jobs().flatMap((jobId) => byId.get(jobId) ?? []);
      if (changed.length === 0) return;
      written = (await this.#writing(changed, ROWS_AT_ONCE)).written;
    }
  }

  /** Writes all changed rows, times included, and runs `work` in the same transaction; returns the owned jobs. */
  async writeAnd(
    jobs: readonly LeasedJob[],
    work: (sql: Queries, owned: readonly LeasedJob[]) => Promise<void>,
  ): Promise<LeasedJob[]> {
    // Most rows are written before, because the transaction blocks other agents.
    await this.write(jobs);
    return (await this.#writing(jobs, ALL_ROWS, work)).owned;
  }

  /** Writes a row ahead of the store; false if the job is not owned. */
  async fence(job: LeasedJob, row: LiveFileRow): Promise<boolean> {
    const portable = this.#options.store.liveFiles.portable(row);
    const name = nameOf(portable);
    this.#ahead.add(name);
    try {
      const owned = await this.#fenced([job], (sql) => writeRows(sql, [portable]));
      return owned.length > 0;
    } finally {
      // By then the store has the row, too.
      setImmediate(() => this.#ahead.delete(name));
    }
  }

  async forgetAll(jobIds: readonly JobId[]): Promise<void> {
    const { store } = this.#options;
    for (const slice of slicesOf(jobIds, JOBS_AT_ONCE)) {
      store.transaction(() => {
        for (const jobId of slice) {
          store.portableRows.forget(jobId);
          this.#changes.forget(jobId);
        }
      });
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async #fenced(
    jobs: readonly LeasedJob[],
    work: (sql: Queries, owned: LeasedJob[]) => Promise<void>,
  ): Promise<LeasedJob[]> {
    const { claims, onLost } = this.#options;
    const owned = await claims.fenced(jobs, work);
    onLost(jobs.filter((job) => !owned.includes(job)));
    return owned;
  }

  async #writing(
    jobs: readonly LeasedJob[],
    max: number,
    work: (sql: Queries, owned: readonly LeasedJob[]) => Promise<void> = async () => {},
  ) {
    const { store } = this.#options;
    let changes: readonly RowChange[] = [];
    const owned = await this.#fenced(jobs, async (sql, fenced) => {
      await work(sql, fenced);
      changes = this.#changesOf(fenced, max);
      const keys = [...changes, ...(max === ALL_ROWS ? this.#timesOf(fenced) : [])];
      const once = new Map(keys.map((key) => [nameOf(key), key]));
      const rows = [...once.values()].map((key) => store.portableRows.read(key));
      await writeRows(sql, rows);
    });
    // Rows changed in the meantime have a higher number, and stay.
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

  /** Of jobs whose rows are here. */
  #timesOf(jobs: readonly LeasedJob[]): RowKey[] {
    const { fleetLeases } = this.#options.store;
    const here = jobs.filter(({ jobId, attempt }) => fleetLeases.get(jobId)?.attempt === attempt);
    return here.flatMap(({ jobId }) => TIMED_TABLES.map((table) => ({ jobId, table, key: '[]' })));
  }
}

const nameOf = ({ jobId, table, key }: RowKey) => `${jobId} ${table} ${key}`;

/** The cluster decides how many rows there are, so they are read in pages. */
const PAGE_ROWS = 5_000;
const ALL_BUT_RESULTS = `kind <> 'result_files'`;

type KeptRow = PortableRow & { readonly row: string };
/** Owners do not write a poll without news: it was not before the last heartbeat of the owner less its lag. */
type PolledRow = KeptRow & { readonly polledSince: number | null };

const FIRST = { jobId: '', table: '', key: '' };

const COLUMNS = 'job_id AS "jobId", kind AS "table", key, row::text AS row';

/** All rows of some jobs in pages: the rows of the jobs first, because the others refer to them. */
export async function* rowsOfJobs(database: Database, jobIds: readonly JobId[]): AsyncGenerator<KeptRow[], void> {
  const select = `SELECT ${COLUMNS} FROM {s}.rows WHERE job_id = ANY($1)`;
  const { border } = database;
  yield border.rows(await database.query<FoundRow>(`${select} AND kind = 'jobs'`, [jobIds]));
  for (let last: Omit<FoundRow, 'row'> | undefined = FIRST; last !== undefined; ) {
    const page: FoundRow[] = await database.query<FoundRow>(
      `${select} AND kind <> 'jobs' AND (job_id, kind, key) > ($2, $3, $4) ORDER BY job_id, kind, key LIMIT ${PAGE_ROWS}`,
      [jobIds, last.jobId, last.table, last.key],
    );
    yield border.rows(page);
    last = page.length < PAGE_ROWS ? undefined : page.at(-1);
  }
}

export async function shownRows(database: Database, only: JobId | undefined): Promise<PolledRow[]> {
  const ofOne = `job_id = $1 AND (${ALL_BUT_RESULTS} OR row::text LIKE '%"reason":"%')`;
  const [where, values] = only === undefined ? [ALL_BUT_RESULTS, []] : [ofOne, [only]];
  const polled = `SELECT floor(extract(epoch FROM seen_at)::float8 * 1000::float8 - lag_ms::float8) FROM {s}.jobs JOIN {s}.agents ON name = owner
    WHERE jobs.job_id = rows.job_id AND state = 'watched' AND ${SEEN} AND not_followed = 0`;
  const select = `SELECT ${COLUMNS}, CASE WHEN kind = 'jobs' THEN (${polled}) END AS "polledSince" FROM {s}.rows
    WHERE ${where} ORDER BY kind <> 'jobs', job_id, kind = 'result_counts'`;
  return database.border.rows(await database.query<FoundRow & Pick<PolledRow, 'polledSince'>>(select, values));
}

export async function writeRows(sql: Queries, rows: readonly PortableRow[]): Promise<void> {
  const kept = rows.filter((one): one is KeptRow => one.row !== null);
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

const keysOf = (rows: readonly RowKey[]) => [
  idsOf(rows),
  rows.map(({ table }) => table),
  rows.map(({ key }) => fleetKey(key)),
];
