/** A fleet for commands, which are no part of it: they give orders, wait for answers, and read. */
import type { JobId } from '../job.ts';
import type { PortableRow } from '../store/portable-rows.ts';
import type { WatchMineRow, WatchOrder } from '../store/rows.ts';
import { NOT_STORED, type Order } from './border.ts';
import { Database } from './database.ts';
import { KeptRows } from './handover.ts';
import { type FleetAddress, type Joined, openFleet, openFleetReadOnly } from './joined.ts';
import type { Answer } from './orders.ts';
import { type AgentRow, Register } from './register.ts';
import { requireKnown, versionOf } from './tables.ts';

/** The owner of a job; null without one. */
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
  static async openReadOnly(address: FleetAddress): Promise<FleetClient> {
    return new FleetClient(await openFleetReadOnly(address));
  }

  /** The server and the database, for people. */
  get where(): string {
    return this.#joined.database.where;
  }

  async order(order: Order): Promise<string> {
    return (await this.#joined.orders.give([order]))[0] ?? '';
  }

  /** Undefined until an agent answered. */
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

  /** Commands for jobs that no agent has had yet; times are milliseconds since 1970. */
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

export interface FleetServer {
  readonly where: string;
  /** As it calls itself: `15.18`. */
  readonly version: string;
  readonly isNewEnough: boolean;
  readonly isEncrypted: boolean;
  /** Whether it is reached by a socket of this machine, or its loopback interface. */
  readonly isHere: boolean;
  /** Whether tables may be made. */
  readonly mayCreate: boolean;
  readonly hasTables: boolean;
  /** Agents that are there. */
  readonly agents: number;
  /** How far its clock is ahead of this one, in milliseconds. */
  readonly aheadMs: number;
}

/** PostgreSQL 13, as it numbers itself. */
const OLDEST = 130_000;

/** @throws JobtailError fleet; config if the tables are those of a newer version */
export async function readFleet(address: FleetAddress): Promise<FleetServer> {
  const database = await Database.connect({ ...address, name: 'check' });
  try {
    const format = await versionOf(database);
    requireKnown(database, format);
    const agents = format === 0 ? [] : await new Register(database).all();
    const [server] = await database.query<Omit<FleetServer, 'where' | 'hasTables' | 'agents'>>(
      `SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int >= ${OLDEST} AS "isNewEnough",
         coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false) AS "isEncrypted",
         coalesce(inet_server_addr() <<= inet '127.0.0.0/8' OR inet_server_addr() = inet '::1', true) AS "isHere",
         has_database_privilege(current_database(), 'CREATE') AS "mayCreate",
         (extract(epoch FROM clock_timestamp()) * 1000 - $1)::float AS "aheadMs"`,
      [Date.now()],
    );
    if (server === undefined) throw new Error('a SELECT without FROM has a row');
    const there = agents.filter(({ state }) => state !== 'gone').length;
    return { ...server, where: database.where, hasTables: format > 0, agents: there };
  } finally {
    await database.close();
  }
}
