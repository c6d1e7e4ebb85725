/** The rows of a job in transit to the next owner: JSON of the columns; key columns identify a row in its job. */
import { JobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import { JobTable, type Sql } from './sql.ts';

/** By table: the columns that identify a row within its job. The table that the others refer to comes first. */
export const PORTABLE_KEYS = {
  jobs: [],
  live_files: ['task_id', 'file'],
  task_searches: [],
  job_information: [],
  result_files: ['name'],
  result_counts: ['state'],
  result_passes: [],
  transfer_leases: ['asked_at'],
  outbox: ['delivery_id'],
  read_positions: ['task_id', 'file'],
  notified_jobs: [],
} as const satisfies Record<string, readonly string[]>;

export type PortableTable = keyof typeof PORTABLE_KEYS;
const PORTABLE_TABLES = Object.keys(PORTABLE_KEYS) as PortableTable[];

export interface RowKey {
  readonly jobId: JobId;
  readonly table: PortableTable;
  readonly key: string;
}

export interface PortableRow extends RowKey {
  /** JSON of its columns; null if the row was removed. */
  readonly row: string | null;
}

/** Columns that have a meaning in this store only. */
const OWN_COLUMNS = ['revision', 'lease_id'];
/** A poll or report without news changes these alone. */
const NO_NEWS = [...OWN_COLUMNS, 'polled_at', 'reported_at'];

type ColumnValues = Readonly<Record<string, string | number | null>>;

export class PortableRows {
  readonly #sql: Sql;
  readonly #columns = new Map<PortableTable, readonly string[]>();

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  read({ jobId, table, key }: RowKey): PortableRow {
    const names = PORTABLE_KEYS[table];
    const where = ['job_id', ...names].map((name) => `${name} = ?`).join(' AND ');
    const found = this.#sql.get<ColumnValues>(
      `SELECT * FROM ${table} WHERE ${where}`,
      jobId,
      ...(JSON.parse(key) as []),
    );
    const row = found && Object.fromEntries(Object.entries(found).filter(([name]) => !OWN_COLUMNS.includes(name)));
    return { jobId, table, key, row: row === undefined ? null : JSON.stringify(row) };
  }

  /** All rows of a job, those first that others refer to. */
  *ofJob(jobId: JobId): Generator<PortableRow, void> {
    for (const table of PORTABLE_TABLES) {
      const keys = this.#sql.all<{ readonly key: string }>(
        `SELECT ${keyOf(table, table)} AS key FROM ${table} WHERE job_id = ?`,
        jobId,
      );
      for (const { key } of keys) yield this.read({ jobId, table, key });
    }
  }

  /**
   * Inserts or updates rows of another store. Ignores columns that only one store has; returns rows that a table
   * refuses. Called within a transaction, with the row of a job before its others. `hasResults`: whether there are rows
   * of results, which are then counted; otherwise their stored counts are used.
   */
  take(rows: readonly PortableRow[], hasResults = true): PortableRow[] {
    return rows.filter(({ table, row }) => {
      if (row === null) return false;
      const found = withoutSubstitutes(JSON.parse(row) as ColumnValues);
      try {
        if (table === 'result_counts' && hasResults) this.#setWithoutRow(found);
        else this.#put(table, found);
        return false;
      } catch (error) {
        if (!isConstraint(error)) throw error;
        return true;
      }
    });
  }

  /** For a mirror directory without the files of a job: everything is requested again. */
  withoutFiles(jobId: JobId): void {
    const set = `UPDATE live_files SET position = 0, checksum = NULL, inode = NULL, modified_ns = NULL,
      rotation = NULL, copy_mark = NULL, verified = NULL, unverified = NULL WHERE job_id = ?`;
    this.#sql.run(set, jobId);
    for (const table of ['result_files', 'result_counts'])
      this.#sql.run(`DELETE FROM ${table} WHERE job_id = ?`, jobId);
  }

  forget(jobId: JobId): void {
    this.#sql.run(`DELETE FROM requests WHERE job_id = ? AND kind IN ('sync', 'unwatch')`, jobId);
    this.#sql.run('DELETE FROM jobs WHERE job_id = ?', jobId);
  }

  #columnsOf(table: PortableTable): readonly string[] {
    const names = this.#columns.get(table) ?? columnsOf(this.#sql, table);
    this.#columns.set(table, names);
    return names;
  }

  #setWithoutRow({ job_id, state, without_row }: ColumnValues): void {
    const set = `INSERT INTO result_counts (job_id, state, kept, without_row, bytes) VALUES (?, ?, 0, ?, 0)
      ON CONFLICT (job_id, state) DO UPDATE SET without_row = excluded.without_row`;
    this.#sql.run(set, job_id, state, without_row);
  }

  #put(table: PortableTable, row: ColumnValues): void {
    const names = this.#columnsOf(table).filter((name) => name in row && !OWN_COLUMNS.includes(name));
    const values = names.map((name) => row[name]);
    const keys = table === 'outbox' ? ['delivery_id'] : ['job_id', ...PORTABLE_KEYS[table]];
    if (table === 'transfer_leases') {
      // Its primary key is valid in one store only.
      this.#sql.run('DELETE FROM transfer_leases WHERE job_id = ? AND asked_at = ?', row['job_id'], row['asked_at']);
    }
    const assigned = names.filter((name) => !keys.includes(name)).map((name) => `${name} = excluded.${name}`);
    const put = `INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`;
    const update = `ON CONFLICT (${keys.join(', ')}) DO UPDATE SET ${assigned.join(', ')}`;
    const onConflict = table === 'transfer_leases' ? '' : update;
    this.#sql.run(`${put} ${onConflict}`, ...values);
  }
}

function columnsOf(sql: Sql, table: PortableTable): string[] {
  const select = 'SELECT name FROM pragma_table_info(?)';
  return sql.all<{ readonly name: string }>(select, table).map(({ name }) => name);
}

/** SQLite rolled back only that statement; the transaction continues. */
const isConstraint = (error: unknown) =>
  error instanceof JobtailError &&
  /^SQLITE_CONSTRAINT/.test((error.cause as { code?: string } | undefined)?.code ?? '');

export interface RowChange extends RowKey {
  readonly change: number;
}

/** Changed rows that the fleet's database lacks. Temporary triggers record them: no cost without a fleet. */
export class RowChanges {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
    sql.pragma('temp_store = MEMORY');
    // Numbers are never reused: a row that changes while it is written elsewhere is written again.
    sql.run(`CREATE TEMP TABLE row_changes (change INTEGER PRIMARY KEY AUTOINCREMENT, of TEXT, job_id TEXT, key TEXT)`);
    sql.run('CREATE UNIQUE INDEX temp.row_changes_by_row ON row_changes (job_id, of, key)');
    for (const table of PORTABLE_TABLES) for (const event of ['INSERT', 'UPDATE', 'DELETE']) this.#note(table, event);
  }

  /** The jobs with changes, the longest waiting first. */
  jobs(): JobId[] {
    const rows = this.#sql.all<{ readonly jobId: JobId }>(
      'SELECT job_id AS jobId FROM row_changes GROUP BY job_id ORDER BY min(change)',
    );
    return rows.map(({ jobId }) => jobId);
  }

  ofJob(jobId: JobId, max: number): RowChange[] {
    const select = 'SELECT change, job_id AS jobId, of AS "table", key FROM row_changes';
    return this.#sql.all(`${select} WHERE job_id = ? ORDER BY change LIMIT ?`, jobId, max);
  }

  /** Removes written changes; later changes of the same rows stay. */
  done(changes: readonly RowChange[]): void {
    for (const { change } of changes) this.#sql.run('DELETE FROM row_changes WHERE change = ?', change);
  }

  forget(jobId: JobId): void {
    this.#sql.run('DELETE FROM row_changes WHERE job_id = ?', jobId);
  }

  /** Records all rows of a job, except those of its results: the next listing finds these. */
  addAll(jobId: JobId): void {
    for (const table of PORTABLE_TABLES) {
      if (table === 'result_files' || table === 'result_counts') continue;
      const insert = `INSERT INTO row_changes (of, job_id, key) SELECT '${table}', job_id, ${keyOf(table, table)}`;
      this.#sql.run(`${insert} FROM main.${table} WHERE job_id = ? ON CONFLICT DO NOTHING`, jobId);
    }
  }

  #note(table: PortableTable, event: string): void {
    const row = event === 'DELETE' ? 'old' : 'new';
    const key = keyOf(table, row);
    const news = columnsOf(this.#sql, table).filter((name) => !NO_NEWS.includes(name));
    const valuesOf = (of: string) => `(${news.map((name) => `${of}.${name}`).join(', ')})`;
    const isNews = event === 'UPDATE' ? `AND ${valuesOf('old')} IS NOT ${valuesOf('new')}` : '';
    // Not REPLACE: the conflict clause of a statement also applies to the triggers that it fires.
    this.#sql.run(`CREATE TEMP TRIGGER ${table}_${event} AFTER ${event} ON main.${table}
      WHEN ${row}.job_id IS NOT NULL ${isNews} BEGIN
      DELETE FROM row_changes WHERE job_id = ${row}.job_id AND of = '${table}' AND key = ${key};
      INSERT INTO row_changes (of, job_id, key) VALUES ('${table}', ${row}.job_id, ${key});
    END`);
  }
}

function keyOf(table: PortableTable, row: string): string {
  const names = PORTABLE_KEYS[table].map((name) => `${row}.${name}`);
  return names.length === 0 ? "'[]'" : `json_array(${names.join(', ')})`;
}

/** The fencing token of the rows of each job, and the id of this state, in a fleet. */
export class FleetLeases extends JobTable<{ readonly jobId: JobId; readonly attempt: number }> {
  constructor(sql: Sql) {
    super(sql, 'fleet_leases', {});
  }

  stateId(): string {
    const insert =
      'INSERT INTO fleet_member (one, state_id) VALUES (1, ?) ON CONFLICT DO UPDATE SET state_id = state_id';
    const returning = `${insert} RETURNING state_id AS stateId`;
    return this.sql.sums<{ readonly stateId: string }>(returning, crypto.randomUUID()).stateId;
  }
}

/** An older agent of the fleet may have written `?` in place of bytes: as in the upgrade of a state (schema.ts). */
function withoutSubstitutes(row: ColumnValues): ColumnValues {
  const [first] = JSON.parse(String(row['inexact'] ?? '[]')) as { readonly start: number }[];
  if (first === undefined) return row;
  const position = Math.min(Number(row['position']), first.start);
  return { ...row, position, checksum: null, modified_ns: null, verified: null };
}
