/** How the parts of a fleet speak SQL: on its own, or within a transaction. `{s}` in it stands for the schema of the fleet. */
import type { PgDatabase } from 'pg-boss';

export interface Sql {
  query<Row = unknown>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  /** For the calls of pg-boss. */
  readonly db: PgDatabase;
}

/** Where the tables are. */
export interface Tables extends Sql {
  readonly schema: string;
  /** The server and the database, for people. */
  readonly where: string;
  /** All of `work`, or nothing. */
  transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T>;
}
