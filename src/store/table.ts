/** How a row of a table is kept: its member `jobId` is the column `job_id`, and what SQLite has no type for is text. */
import { JobtailError } from '../errors.ts';
import type { Sql } from './sql.ts';

type OfSqlite = string | number | null;

/** The members of a row that are kept as something else: true and false as 1 and 0, all others as JSON. */
export type KeptOtherwise<Row> = {
  readonly [Name in keyof Row as [Row[Name]] extends [OfSqlite] ? never : Name]: [Row[Name]] extends [boolean]
    ? 'flag'
    : 'json';
};

interface Column {
  readonly name: string;
  /** 0 for a column that is not of the primary key. */
  readonly pk: number;
}

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
    const columns = sql.all<Column>('SELECT name, pk FROM pragma_table_info(?)', name);
    if (columns.length === 0) {
      throw new JobtailError('store', `the table ${name} is missing in the state`, {
        hint: 'start with a state.directory of its own, or bring back a copy of this one',
      });
    }
    const others = columns.filter(({ pk }) => pk === 0);
    const assigned = others.map((column) => `${column.name} = @${memberOf(column)}`);
    this.#sql = sql;
    this.#names = columns.map((column) => ({ name: column.name, member: memberOf(column) }));
    this.columns = columns.map((column) => `${column.name} AS ${memberOf(column)}`).join(', ');
    this.#select = `SELECT ${this.columns} FROM ${name}`;
    // No REPLACE: triggers would not be told of the row that goes.
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
    return this.#sql.all<Record<string, unknown>>(`${this.#select} ${rest}`, ...values).map((raw) => {
      for (const [name, kind] of this.#kept) raw[name] = kind === 'flag' ? raw[name] === 1 : parsed(raw[name]);
      return raw as Row;
    });
  }

  /** The columns of a row as JSON, as SQLite has them. */
  portable(row: Row): string {
    const raw = this.#rawOf(row);
    return JSON.stringify(Object.fromEntries(this.#names.map(({ name, member }) => [name, raw[member]])));
  }

  /** Adds a row, or brings the one with its primary key to it. */
  save(row: Row): void {
    this.#sql.run(this.#save, this.#rawOf(row));
  }

  #rawOf(row: Row): Record<string, unknown> {
    const raw = { ...row } as Record<string, unknown>;
    for (const [name, kind] of this.#kept) raw[name] = kind === 'flag' ? Number(raw[name]) : jsonOf(raw[name]);
    return raw;
  }
}

const memberOf = ({ name }: Column) => name.replaceAll(/_[a-z]/g, (found) => found.slice(1).toUpperCase());

/** A value as the JSON text of one column; null stays null. */
export const jsonOf = (value: unknown) => (value === null ? null : JSON.stringify(value));
const parsed = (text: unknown): unknown => (text === null ? null : JSON.parse(String(text)));
