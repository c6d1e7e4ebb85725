/** SQL on better-sqlite3: how its objects are kept, its statements prepared, its rows typed, and its errors worded. */
import fs from 'node:fs';
import path from 'node:path';
import Database, { type RunResult, type Statement } from 'better-sqlite3';
import { AGENT_CONTINUES, asJobtailError, JobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import { whyNotWritable } from '../system/storage.ts';

/** Statements on the open database: each is prepared once, and what SQLite throws becomes an error of the one table. */
export class Sql {
  readonly #db: Database.Database;
  readonly #file: string;
  readonly #prepared = new Map<string, Statement>();
  /** Made once: better-sqlite3 makes four functions for each. */
  readonly #transaction: (work: () => unknown) => unknown;

  constructor(db: Database.Database, file: string) {
    this.#db = db;
    this.#file = file;
    this.#transaction = db.transaction((work: () => unknown) => work()).immediate;
  }

  run(sql: string, ...values: readonly unknown[]): RunResult {
    return this.#try(() => this.#prepare(sql).run(...values));
  }

  get<Row>(sql: string, ...values: readonly unknown[]): Row | undefined {
    return this.#try(() => this.#prepare(sql).get(...values) as Row | undefined);
  }

  /** The row of a query that adds up, which always has one. */
  sums<Row>(sql: string, ...values: readonly unknown[]): Row {
    const row = this.get<Row>(sql, ...values);
    if (row === undefined) throw new Error('a sum has a row');
    return row;
  }

  all<Row>(sql: string, ...values: readonly unknown[]): Row[] {
    return this.#try(() => this.#prepare(sql).all(...values) as Row[]);
  }

  transaction<T>(work: () => T): T {
    return this.#try(() => this.#transaction(work) as T);
  }

  pragma(text: string): void {
    this.#try(() => this.#db.exec(`PRAGMA ${text}`));
  }

  close(): void {
    this.#db.close();
  }

  #prepare(sql: string): Statement {
    const known = this.#prepared.get(sql);
    if (known !== undefined) return known;
    const prepared = keepAlive(this.#db.prepare(sql));
    this.#prepared.set(sql, prepared);
    return prepared;
  }

  #try<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw asStoreError(error, this.#file);
    }
  }
}

type OfSqlite = string | number | null;

/** The members of a row that are kept as something else: true and false as 1 and 0, all others as JSON. */
type KeptOtherwise<Row> = {
  readonly [Name in keyof Row as [Row[Name]] extends [OfSqlite] ? never : Name]: [Row[Name]] extends [boolean]
    ? 'flag'
    : 'json';
};

interface ColumnInfo {
  readonly name: string;
  /** 0 for a column that is not of the primary key. */
  readonly pk: number;
}

/** The rows of a table: the member `jobId` is the column `job_id`, and what SQLite has no type for is text. */
export class Table<Row extends object> {
  /** Every column under the name of its member, for SELECT and RETURNING. */
  readonly columns: string;
  readonly #sql: Sql;
  readonly #select: string;
  readonly #save: string;
  readonly #names: readonly { readonly name: string; readonly member: string }[];
  readonly #kept: readonly (readonly [name: string, kind: 'flag' | 'json'])[];

  /** @throws JobtailError `store` if the database has no such table */
  constructor(sql: Sql, name: string, kept: KeptOtherwise<Row>) {
    const columns = sql.all<ColumnInfo>('SELECT name, pk FROM pragma_table_info(?)', name);
    if (columns.length === 0) {
      throw new JobtailError('store', `the table ${name} is missing in the state`, {
        hint: 'set another state.directory, or restore a copy of this one',
      });
    }
    const others = columns.filter(({ pk }) => pk === 0);
    const assigned = others.map((column) => `${column.name} = @${memberOf(column)}`);
    this.#sql = sql;
    this.#names = columns.map((column) => ({ name: column.name, member: memberOf(column) }));
    this.columns = columns.map((column) => `${column.name} AS ${memberOf(column)}`).join(', ');
    this.#select = `SELECT ${this.columns} FROM ${name}`;
    // No REPLACE: triggers would not run for the deleted row.
    this.#save = `INSERT INTO ${name} (${columns.map((column) => column.name).join(', ')})
      VALUES (${columns.map((column) => `@${memberOf(column)}`).join(', ')})
      ON CONFLICT DO UPDATE SET ${assigned.join(', ')}`;
    this.#kept = Object.entries<'flag' | 'json'>(kept);
  }

  /** The first row; `rest` is what follows the name of the table in a SELECT. */
  get(rest: string, ...values: readonly unknown[]): Row | undefined {
    return this.all(`${rest} LIMIT 1`, ...values)[0];
  }

  all(rest: string, ...values: readonly unknown[]): Row[] {
    return this.#sql.all<Record<string, unknown>>(`${this.#select} ${rest}`, ...values).map((found) => {
      // What better-sqlite3 returns is a hash table, which takes four times the memory.
      const raw = { ...found };
      for (const [name, kind] of this.#kept) raw[name] = kind === 'flag' ? raw[name] === 1 : parsed(raw[name]);
      return raw as Row;
    });
  }

  /** The columns of a row as JSON, as SQLite has them. */
  portable(row: Row): string {
    const raw = this.#rawOf(row);
    return JSON.stringify(Object.fromEntries(this.#names.map(({ name, member }) => [name, raw[member]])));
  }

  save(row: Row): void {
    this.#sql.run(this.#save, this.#rawOf(row));
  }

  #rawOf(row: Row): Record<string, unknown> {
    const raw = { ...row } as Record<string, unknown>;
    for (const [name, kind] of this.#kept) raw[name] = kind === 'flag' ? Number(raw[name]) : jsonOf(raw[name]);
    return raw;
  }
}

export class JobTable<Row extends { readonly jobId: JobId }> {
  protected readonly sql: Sql;
  protected readonly table: Table<Row>;

  constructor(sql: Sql, name: string, kept: KeptOtherwise<Row>) {
    this.sql = sql;
    this.table = new Table(sql, name, kept);
  }

  get(jobId: JobId): Row | undefined {
    return this.table.get('WHERE job_id = ?', jobId);
  }

  all(): Row[] {
    return this.table.all('');
  }

  save(row: Row): void {
    this.table.save(row);
  }
}

const memberOf = ({ name }: ColumnInfo) => name.replaceAll(/_[a-z]/g, (found) => found.slice(1).toUpperCase());

/** A value as the JSON text of one column; null stays null. */
export const jsonOf = (value: unknown) => (value === null ? null : JSON.stringify(value));
const parsed = (text: unknown): unknown => (text === null ? null : JSON.parse(String(text)));

/**
 * The objects of better-sqlite3 12 on Node.js 24.19 and later: when the garbage collection takes one of them, the
 * process is ended ("Assertion failed: (env) != nullptr"), because what removes them looks for an environment that is
 * not there at that moment. So there none is given up. Version 13 is made otherwise, and needs Node.js 22.
 */
const [MAJOR = 0] = process.versions.node.split('.').map(Number);
const kept: unknown[] = [];

/** The object, which stays as long as the process. Closed ones hold nothing but themselves. */
export function keepAlive<Native extends object>(native: Native): Native {
  if (MAJOR >= 24) kept.push(native);
  return native;
}

/** Reads a pragma; `exec` sets one. Not by `Database.pragma`, whose statements are not cached. */
export function pragma(db: Database.Database, name: string): unknown {
  return keepAlive(db.prepare(`PRAGMA ${name}`))
    .pluck()
    .get();
}

/** Opens a database file. @throws what better-sqlite3 throws; local-io if its native part cannot be loaded */
export function openNative(file: string | Buffer, options: Database.Options): Database.Database {
  try {
    return keepAlive(new Database(file, options));
  } catch (error) {
    if (!(error instanceof Error) || !isLoadFailure(error)) throw error;
    const [reason = ''] = error.message.split('\n');
    throw new JobtailError('local-io', `cannot load the native module better-sqlite3: ${reason}`, {
      cause: error,
      hint: 'run "npm rebuild --global better-sqlite3", which needs a C++ compiler; without one, use the archive that has its own Node.js (docs/install.md)',
    });
  }
}

/** It was not built, or for another release of Node.js or another system. */
const isLoadFailure = (error: NodeJS.ErrnoException) =>
  error.code === 'ERR_DLOPEN_FAILED' || error.code === 'MODULE_NOT_FOUND';

/** The version of SQLite. @throws as `openNative` */
export function sqliteVersion(): string {
  const db = openNative(':memory:', {});
  try {
    return String(keepAlive(db.prepare('SELECT sqlite_version()')).pluck().get());
  } finally {
    db.close();
  }
}

/** Whether a read-only connection may succeed. */
export const isOfWriting = (error: unknown): boolean =>
  error instanceof Database.SqliteError && /^SQLITE_(CANTOPEN|READONLY|PERM|IOERR|FULL)/.test(error.code);

/** What SQLite threw, with the cause in the words of the system. */
export function asStoreError(error: unknown, file: string): JobtailError {
  if (!(error instanceof Database.SqliteError)) return asJobtailError(error);
  const { code: sqlite } = error;
  const directory = path.dirname(file);
  const failed = (code: 'store' | 'disk-full' | 'permission', message: string, hint: string) =>
    new JobtailError(code, message, { cause: error, hint });
  if (sqlite === 'SQLITE_FULL')
    return failed('disk-full', `no space left on device: ${file}`, `free some space${AGENT_CONTINUES}`);
  if (/^SQLITE_IOERR_(LOCK|RDLOCK|UNLOCK|CHECKRESERVEDLOCK|SHMLOCK)$/.test(sqlite)) return withoutLocks(directory);
  if (isOfWriting(error)) {
    // SQLite does not report why.
    const why = whyNotWritable(directory, fs.existsSync(file) ? file : directory);
    if (why !== undefined)
      return new JobtailError(why.code, `cannot write ${file}: ${why.message}`, { cause: error, hint: why.hint });
    if (!sqlite.startsWith('SQLITE_IOERR'))
      return failed('permission', `${file} cannot be opened for writing`, 'see who may write it, and its directory');
  }
  if (sqlite.startsWith('SQLITE_BUSY')) {
    const hint = 'find the process that has it open (fuser), and end it';
    return failed('store', `${file} is locked by another process`, hint);
  }
  const hint = 'see the log of the kernel (dmesg) for the disk; at its start, the agent sets a corrupt state aside';
  return failed('store', `cannot use ${file} (${sqlite})`, hint);
}

/** Some network file systems have none, or are mounted without them. */
export function withoutLocks(directory: string): JobtailError {
  return new JobtailError('store', `the file system of ${directory} has no locks for files`, {
    hint: 'set state.directory to a local disk, or mount the file system with locks (Lustre: -o flock, NFS: lockd)',
  });
}
