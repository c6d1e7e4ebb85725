/** The rules by which jobs of the user are followed without being named: one of the configuration, one of a command. */
import type { WatchMineRow } from './rows.ts';
import type { Sql } from './sql.ts';
import { Table } from './table.ts';

export class WatchMine {
  readonly #sql: Sql;
  readonly #table: Table<WatchMineRow>;

  constructor(sql: Sql) {
    this.#sql = sql;
    this.#table = new Table(sql, 'watch_mine', { include: 'json', exclude: 'json' });
  }

  /** The rule in force: that of a command, else that of the configuration; undefined if there is none. */
  inForce(): WatchMineRow | undefined {
    return this.#table.get("ORDER BY source = 'config'");
  }

  of(source: WatchMineRow['source']): WatchMineRow | undefined {
    return this.#table.get('WHERE source = ?', source);
  }

  save(row: WatchMineRow): void {
    this.#table.save(row);
  }

  remove(source: WatchMineRow['source']): void {
    this.#sql.run('DELETE FROM watch_mine WHERE source = ?', source);
  }
}
