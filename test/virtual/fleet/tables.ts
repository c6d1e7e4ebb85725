/** The tables of a simulated PostgreSQL, with the isolation and the locks of rows that a fleet relies on. */

export type Row = Readonly<Record<string, unknown>>;
export type TableName =
  | 'agents'
  | 'attempts'
  | 'configured'
  | 'habits'
  | 'jobs'
  | 'locks'
  | 'orders'
  | 'rows'
  | 'rules';

/** Thrown where a statement must wait for another transaction; it is run again afterwards. */
export class Blocked extends Error {
  readonly by: Transaction;

  constructor(by: Transaction) {
    super('blocked');
    this.by = by;
  }
}

export const keyOf = (...parts: readonly unknown[]) => JSON.stringify(parts);

type Changes = Map<string, { readonly table: TableName; readonly key: string; readonly row: Row | undefined }>;

export class Tables {
  readonly #tables = new Map<TableName, Map<string, Row>>();
  /** By table and key. */
  readonly lockedBy = new Map<string, Transaction>();
  #orders = 0;

  /** Grows with each order, also over a transaction that is rolled back. */
  nextOrder(): number {
    this.#orders += 1;
    return this.#orders;
  }

  of(table: TableName): Map<string, Row> {
    const found = this.#tables.get(table) ?? new Map<string, Row>();
    this.#tables.set(table, found);
    return found;
  }

  /** All that is committed: rows never change, so no copy of them is needed. */
  copy(): ReadonlyMap<TableName, ReadonlyMap<string, Row>> {
    return new Map([...this.#tables].map(([table, rows]) => [table, new Map(rows)]));
  }

  restore(copy: ReadonlyMap<TableName, ReadonlyMap<string, Row>>): void {
    this.#tables.clear();
    for (const [table, rows] of copy) this.#tables.set(table, new Map(rows));
  }
}

export class Transaction {
  /** When it began: what `now()` returns. */
  readonly now: number;
  readonly tables: Tables;
  /** What `pg_notify` is to send when it is committed. */
  readonly notices = new Set<string>();
  /** Resolves when it has ended. */
  readonly ended: Promise<void>;
  isOver = false;
  readonly #clock: () => number;
  readonly #locked = new Set<string>();
  readonly #changes: Changes = new Map();
  /** Of the statement that runs. */
  #changing: Changes = new Map();
  #end: () => void = () => {};

  constructor(tables: Tables, clock: () => number) {
    this.tables = tables;
    this.#clock = clock;
    this.now = clock();
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  /** `clock_timestamp()`. */
  get clockNow(): number {
    return this.#clock();
  }

  /** Runs one statement: all of its changes take effect, or none. @throws Blocked */
  run<T>(statement: () => T): T {
    this.#changing = new Map();
    const result = statement();
    for (const [name, change] of this.#changing) this.#changes.set(name, change);
    this.#changing = new Map();
    return result;
  }

  get(table: TableName, key: string): Row | undefined {
    const name = `${table} ${key}`;
    const change = this.#changing.get(name) ?? this.#changes.get(name);
    return change === undefined ? this.tables.of(table).get(key) : change.row;
  }

  /** The rows that fit, by their keys. */
  all(table: TableName, fits: (row: Row) => boolean = () => true): [key: string, row: Row][] {
    const found = new Map(this.tables.of(table));
    for (const changes of [this.#changes, this.#changing])
      for (const { table: changed, key, row } of changes.values()) {
        if (changed !== table) continue;
        if (row === undefined) found.delete(key);
        else found.set(key, row);
      }
    return [...found].filter(([, row]) => fits(row));
  }

  /** @throws Blocked if another transaction has the row */
  lock(table: TableName, key: string): void {
    const name = `${table} ${key}`;
    const holder = this.tables.lockedBy.get(name) ?? this;
    if (holder !== this) throw new Blocked(holder);
    this.#locked.add(name);
    this.tables.lockedBy.set(name, this);
  }

  canLock(table: TableName, key: string): boolean {
    return (this.tables.lockedBy.get(`${table} ${key}`) ?? this) === this;
  }

  /** Removes the row if it is undefined. @throws Blocked if another transaction has the row */
  put(table: TableName, key: string, row: Row | undefined): void {
    this.lock(table, key);
    this.#changing.set(`${table} ${key}`, { table, key, row });
  }

  change(table: TableName, key: string, row: Row, columns: Row): Row {
    const changed = { ...row, ...columns };
    this.put(table, key, changed);
    return changed;
  }

  remove(table: TableName, key: string): void {
    this.put(table, key, undefined);
  }

  commit(): void {
    if (this.isOver) return;
    for (const { table, key, row } of this.#changes.values()) {
      if (row === undefined) this.tables.of(table).delete(key);
      else this.tables.of(table).set(key, row);
    }
    this.rollback();
  }

  rollback(): void {
    if (this.isOver) return;
    this.isOver = true;
    for (const name of this.#locked) this.tables.lockedBy.delete(name);
    this.#end();
  }
}
