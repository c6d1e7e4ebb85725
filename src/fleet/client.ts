/** Access of commands to a fleet: they place commands, wait for answers, and read. */
import type { JobId } from '../job.ts';
import type { PortableRow } from '../store/portable-rows.ts';
import type { WatchMineRow, WatchRequest } from '../store/rows.ts';
import { type Command, NOT_STORED } from './border.ts';
import type { Answer } from './commands.ts';
import { Database, type FleetAddress } from './database.ts';
import { FORGOTTEN, forgetRows } from './forgotten.ts';
import { KeptRows } from './handover.ts';
import { type Joined, openFleet, openFleetReadOnly } from './joined.ts';
import { type AgentRow, Register } from './register.ts';
import { requireKnown, versionOf } from './tables.ts';

interface OwnerRow {
  readonly jobId: JobId;
  readonly state: string;
  readonly source: string;
  readonly owner: string | null;
  readonly attempt: number;
  /** Id of the mirror directory that has its bytes; null before there are any. */
  readonly mirror: string | null;
  /** Whether it waits for an owner. */
  readonly isWaiting: boolean;
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

  /** For commands that only read. @throws JobtailError fleet, config */
  static async openReadOnly(address: FleetAddress): Promise<FleetClient> {
    return new FleetClient(await openFleetReadOnly(address));
  }

  get where(): string {
    return this.#joined.database.where;
  }

  async command(command: Command): Promise<string> {
    return (await this.#joined.commands.give([command]))[0] ?? '';
  }

  answerOf(commandId: string): Promise<Answer | undefined> {
    return this.#joined.commands.answerOf(commandId);
  }

  agents(): Promise<AgentRow[]> {
    return this.#joined.register.all();
  }

  /**
   * The rows of all jobs, or of one, that a display needs. The time of the last poll is a lower bound: the heartbeat of
   * the owner less its lag.
   */
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

  /** Commands for jobs that no agent has had yet. */
  async newCommands(): Promise<(WatchRequest & { readonly madeAt: number })[]> {
    const commands = await this.#joined.commands.ofNew();
    return commands.flatMap(({ kind, body, madeAt }) =>
      kind === 'watch' && body !== null ? [{ ...body, madeAt }] : [],
    );
  }

  capabilities(service: string) {
    return this.#joined.database.capabilities(service);
  }

  ignore(row: PortableRow): void {
    this.#joined.database.border.refuse(row, NOT_STORED);
  }

  async allRows(jobId: JobId): Promise<PortableRow[]> {
    const rows: PortableRow[] = [];
    for await (const page of new KeptRows(this.#joined.database).ofJobs([jobId])) rows.push(...page);
    return rows;
  }

  async owners(only?: JobId): Promise<OwnerRow[]> {
    const { database } = this.#joined;
    const rows = await database.query<OwnerRow>(
      `SELECT job_id AS "jobId", state, source, attempt, owner, mirror, waiting_since IS NOT NULL AS "isWaiting" FROM {s}.jobs
       WHERE $1::text IS NULL OR job_id::text OPERATOR(pg_catalog.=) $1::text ORDER BY job_id`,
      [only ?? null],
    );
    return database.border.jobs(rows).filter(({ state }) => state !== FORGOTTEN);
  }

  /** Removes all rows of a job without an owner. @throws JobtailError usage if an agent works on it */
  async forget(jobId: JobId): Promise<void> {
    await this.#joined.database.transaction((sql) => forgetRows(sql, jobId));
  }

  async rule(): Promise<WatchMineRow | undefined> {
    const { database } = this.#joined;
    const [row] = await database.query<{ readonly rule: unknown }>('SELECT rule FROM {s}.rules');
    return database.border.rule(row?.rule);
  }

  async setRule(rule: WatchMineRow | undefined): Promise<void> {
    const { database, commands } = this.#joined;
    if (rule === undefined) await database.query('DELETE FROM {s}.rules');
    else {
      await database.query(
        'INSERT INTO {s}.rules (one, rule) VALUES (1, $1) ON CONFLICT (one) DO UPDATE SET rule = excluded.rule',
        [JSON.stringify(rule)],
      );
    }
    await commands.notify(database);
  }

  askToDrain(name: string): Promise<boolean> {
    return this.#joined.register.askToDrain(name);
  }

  close(): Promise<void> {
    return this.#joined.close();
  }
}

export interface FleetServer {
  readonly where: string;
  /** As the server reports it: `15.18`. */
  readonly version: string;
  readonly isNewEnough: boolean;
  readonly isEncrypted: boolean;
  /** Whether the connection is a local socket or loopback. */
  readonly isHere: boolean;
  readonly mayCreate: boolean;
  readonly hasTables: boolean;
  readonly agents: number;
  readonly aheadMs: number;
}

/** PostgreSQL 13, in the numbers of `server_version_num`. */
const OLDEST = 130_000;

/** @throws JobtailError fleet; config if the tables are those of a newer version */
export async function readFleet(address: FleetAddress): Promise<FleetServer> {
  const database = await Database.connect(address, { name: 'check' });
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
