/** The database of each state: real SQLite in a real file, which one connection locks between the events of a run. */
import Database from 'better-sqlite3';
import type { Patched } from './machine.ts';

/** The last pragma with which a store opens its database. */
const OPENED = 'PRAGMA foreign_keys = ON';
/** After a first look at the log: else its index would be in the memory of this connection, and never be shared. */
const ALONE = 'BEGIN IMMEDIATE; COMMIT; PRAGMA locking_mode = EXCLUSIVE';

export class SimulatedDatabase {
  /** On `Database.prototype`. */
  readonly patches: readonly Patched[];
  /** The connections of the agents that run, by their files. */
  readonly #owners = new Map<string, Database.Database>();
  readonly #statements = new WeakMap<Database.Database, Map<string, Database.Statement<[]>>>();

  /** `begin` is called before each transaction, which fails with what it throws. */
  constructor(begin: () => void) {
    const real = { ...Database.prototype };
    const owners = this.#owners;
    this.patches = [
      [
        Database.prototype,
        'transaction',
        function transaction(this: Database.Database, work: (...args: unknown[]) => unknown) {
          return real.transaction.call(this, (...args: unknown[]) => {
            begin();
            return work(...args);
          });
        },
      ],
      [
        Database.prototype,
        'exec',
        function exec(this: Database.Database, text: string) {
          real.exec.call(this, text);
          if (text !== OPENED || owners.has(this.name)) return this;
          owners.set(this.name, this);
          return real.exec.call(this, ALONE);
        },
      ],
      [
        Database.prototype,
        'close',
        function close(this: Database.Database) {
          if (owners.get(this.name) === this) owners.delete(this.name);
          return real.close.call(this);
        },
      ],
    ];
  }

  /** The values of the first column, of each agent. */
  column(sql: string): unknown[] {
    return [...this.#owners.values()].flatMap((owner) => this.#prepared(owner, sql).all());
  }

  #prepared(owner: Database.Database, sql: string): Database.Statement<[]> {
    const ofOwner = this.#statements.get(owner) ?? new Map<string, Database.Statement<[]>>();
    this.#statements.set(owner, ofOwner);
    const statement = ofOwner.get(sql) ?? owner.prepare<[]>(sql).pluck();
    ofOwner.set(sql, statement);
    return statement;
  }

  /** Changes the tables of each agent, under it. */
  exec(sql: string): void {
    for (const owner of this.#owners.values()) owner.exec(sql);
  }
}
