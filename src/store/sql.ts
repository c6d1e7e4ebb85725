/** SQL on the open database. Each statement is prepared once; what SQLite throws becomes an error of the one table. */
import type { RunResult, Statement } from 'better-sqlite3';
import { asStoreError, type SqliteDatabase } from './database.ts';
import { keepAlive } from './native.ts';

export class Sql {
  readonly #db: SqliteDatabase;
  /** The file of the database, for messages. */
  readonly #file: string;
  readonly #prepared = new Map<string, Statement>();

  constructor(db: SqliteDatabase, file: string) {
    this.#db = db;
    this.#file = file;
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

  /** Runs `work` as one transaction. */
  transaction<T>(work: () => T): T {
    return this.#try(() => this.#db.transaction(work).immediate());
  }

  pragma(text: string): void {
    this.#try(() => this.#db.exec(`PRAGMA ${text}`));
  }

  close(): void {
    this.#db.close();
  }

  #prepare(sql: string): Statement {
    const prepared = this.#prepared.get(sql) ?? keepAlive(this.#db.prepare(sql));
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
