/** A fleet for those who are no part of it: commands, which order, wait for answers, and look. */
import type { JobId } from '../job.ts';
import type { PortableRow } from '../store/portable-rows.ts';
import type { WatchMineRow, WatchOrder } from '../store/rows.ts';
import { NOT_STORED, type Order } from './border.ts';
import { type FleetAddress, type Joined, openFleet, openFleetToLook } from './joined.ts';
import { KeptRows } from './kept-rows.ts';
import type { Answer } from './orders.ts';
import type { AgentRow } from './register.ts';

/** Whose a job is; null while nobody owns it. */
export interface OwnerRow {
  readonly jobId: JobId;
  readonly state: string;
  readonly source: string;
  readonly owner: string | null;
  /** Grows with each owner. */
  readonly attempt: number;
}

export class FleetClient {
  readonly #joined: Joined;

  private constructor(joined: Joined) {
    this.#joined = joined;
  }

  /** @throws JobtailError fleet, config */
  static async open(address: FleetAddress): Promise<FleetClient> {
    return new FleetClient(await openFleet(address, 'command'));
  }

  /** For a command that gives no orders: it changes nothing. @throws JobtailError fleet, config */
  static async look(address: FleetAddress): Promise<FleetClient> {
    return new FleetClient(await openFleetToLook(address));
  }

  /** The server and the database, for people. */
  get where(): string {
    return this.#joined.database.where;
  }

  async order(order: Order): Promise<string> {
    return (await this.#joined.orders.give([order]))[0] ?? '';
  }

  /** Undefined while nobody has answered. */
  answerOf(orderId: string): Promise<Answer | undefined> {
    return this.#joined.orders.answerOf(orderId);
  }

  agents(): Promise<AgentRow[]> {
    return this.#joined.register.all();
  }

  /** What is shown of all jobs, or of one. Their last polls are at least as late as their owners' lag has it. */
  async rows(only: JobId | undefined): Promise<PortableRow[]> {
    const { database, register } = this.#joined;
    const polled = await register.polledSince(only);
    const rows = await new KeptRows(database).shown(only);
    return rows.map((one) => {
      const since = one.table === 'jobs' ? polled.get(one.jobId) : undefined;
      if (since === undefined) return one;
      const row = JSON.parse(one.row) as { readonly polled_at: number | null };
      return { ...one, row: JSON.stringify({ ...row, polled_at: Math.max(row.polled_at ?? 0, since) }) };
    });
  }

  /** What is ordered of jobs that nobody has had yet; times are milliseconds since 1970. */
  async newOrders(): Promise<(WatchOrder & { readonly madeAt: number })[]> {
    const orders = await this.#joined.orders.ofNew();
    return orders.flatMap(({ kind, body, madeAt }) => (kind === 'watch' && body !== null ? [{ ...body, madeAt }] : []));
  }

  /** Reports a row that the store refuses. */
  ignore(row: PortableRow): void {
    this.#joined.database.border.refuse(row, NOT_STORED);
  }

  /** All rows of a job, its results among them. */
  async allRows(jobId: JobId): Promise<PortableRow[]> {
    const rows: PortableRow[] = [];
    for await (const page of new KeptRows(this.#joined.database).ofJobs([jobId])) rows.push(...page);
    return rows;
  }

  /** Of all jobs, or of one. */
  async owners(only?: JobId): Promise<OwnerRow[]> {
    const { database } = this.#joined;
    const rows = await database.query<OwnerRow>(
      `SELECT job_id AS "jobId", state, source, attempt, owner FROM {s}.jobs
       WHERE $1::text IS NULL OR job_id::text OPERATOR(pg_catalog.=) $1::text ORDER BY job_id`,
      [only ?? null],
    );
    return database.border.jobs(rows);
  }

  /** The rule of a command for jobs of the user; undefined if there is none. */
  async rule(): Promise<WatchMineRow | undefined> {
    const { database } = this.#joined;
    const [row] = await database.query<{ readonly rule: unknown }>('SELECT rule FROM {s}.rules');
    return database.border.rule(row?.rule);
  }

  async setRule(rule: WatchMineRow | undefined): Promise<void> {
    const { database, orders } = this.#joined;
    if (rule === undefined) await database.query('DELETE FROM {s}.rules');
    else {
      await database.query(
        'INSERT INTO {s}.rules (one, rule) VALUES (1, $1) ON CONFLICT (one) DO UPDATE SET rule = excluded.rule',
        [JSON.stringify(rule)],
      );
    }
    await orders.notify(database);
  }

  /** False if no such agent is there. */
  askToDrain(name: string): Promise<boolean> {
    return this.#joined.register.askToDrain(name);
  }

  close(): Promise<void> {
    return this.#joined.close();
  }
}
