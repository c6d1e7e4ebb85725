/** What was learned about a service and holds until it is learned anew: text encoding, batch limit, ... */
import type { Sql } from './sql.ts';
import { Table } from './table.ts';

interface HabitRow {
  readonly service: string;
  readonly name: string;
  readonly value: string;
}

export class Habits {
  readonly #service: string;
  readonly #table: Table<HabitRow>;

  /** `service` is the address of the file-transfer service. */
  constructor(sql: Sql, service: string) {
    this.#service = service;
    this.#table = new Table(sql, 'habits', {});
  }

  get service(): string {
    return this.#service;
  }

  get(name: string): string | undefined {
    return this.#table.get('WHERE service = ? AND name = ?', this.#service, name)?.value;
  }

  /** All that is known of the service. */
  all(): Pick<HabitRow, 'name' | 'value'>[] {
    return this.#table
      .all('WHERE service = ? ORDER BY name', this.#service)
      .map(({ name, value }) => ({ name, value }));
  }

  set(name: string, value: string): void {
    this.#table.save({ service: this.#service, name, value });
  }
}
