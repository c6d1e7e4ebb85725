/** What was learned about a service and holds until it is learned anew: text encoding, batch limit, ... */
import type { SqliteDatabase } from './database.ts';

export class Habits {
  readonly #service: string;
  readonly #get;
  readonly #set;

  /** `service` is the address of the file-transfer service. */
  constructor(db: SqliteDatabase, service: string) {
    this.#service = service;
    this.#get = db.prepare<[string, string], { value: string }>(
      'SELECT value FROM habits WHERE service = ? AND name = ?',
    );
    this.#set = db.prepare('INSERT OR REPLACE INTO habits VALUES (?, ?, ?)');
  }

  get(name: string): string | undefined {
    return this.#get.get(this.#service, name)?.value;
  }

  set(name: string, value: string): void {
    this.#set.run(this.#service, name, value);
  }
}
