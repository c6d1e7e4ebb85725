/** Access of commands to a fleet: they place commands, wait for answers, and read. */
import type { JobId } from '../../job.ts';
import type { WatchMineRow } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import { FleetAgents } from '../agents/agents.ts';
import { Database, type FleetAddress } from '../database/database.ts';
import { migrate, requireCurrent, versionOf } from '../database/tables.ts';
import type { Command } from '../rows/border.ts';
import { type CopyOptions, FleetCopy } from '../rows/copy.ts';
import { Commands } from './commands.ts';
import { FORGOTTEN, forgetRows, lockFree } from './forgotten.ts';

interface OwnerRow {
  readonly jobId: JobId;
  readonly state: string;
  readonly owner: string | null;
  readonly attempt: number;
  /** Id of the mirror directory that has its bytes; null before there are any. */
  readonly mirror: string | null;
  /** Whether it waits for an owner. */
  readonly isWaiting: boolean;
}

export class FleetClient {
  readonly #database: Database;
  readonly commands: Commands;
  readonly agents: FleetAgents;
  readonly #copy: FleetCopy;

  private constructor(database: Database, copy: FleetCopy) {
    this.#database = database;
    this.commands = new Commands(database);
    this.agents = new FleetAgents(database);
    this.#copy = copy;
  }

  /** `service`: the address whose capabilities `jobs` has. @throws JobtailError fleet, config */
  static async open(address: FleetAddress, service = ''): Promise<FleetClient> {
    return new FleetClient(await Database.open(address, { name: 'command' }, migrate), new FleetCopy(service));
  }

  /** For commands that only read: it needs no right but SELECT. @throws JobtailError fleet, config */
  static async openReadOnly(address: FleetAddress, copy = new FleetCopy('')): Promise<FleetClient> {
    return new FleetClient(await Database.open(address, { name: 'command', max: 1 }, requireCurrent), copy);
  }

  /** Returns the id of the command. */
  async command(command: Command): Promise<string> {
    return (await this.commands.give([command]))[0] ?? '';
  }

  /** A store with the present rows of all jobs, or of one: the same object each time. */
  jobs(options: CopyOptions = {}): Promise<Store> {
    return this.#copy.refresh(this.#database, options);
  }

  async owners(only?: JobId): Promise<OwnerRow[]> {
    const rows = await this.#database.query<OwnerRow>(
      `SELECT job_id AS "jobId", state, attempt, owner, mirror, waiting_since IS NOT NULL AS "isWaiting" FROM {s}.jobs
       WHERE $1::text IS NULL OR job_id::text OPERATOR(pg_catalog.=) $1::text ORDER BY job_id`,
      [only ?? null],
    );
    return this.#database.border.jobs(rows).filter(({ state }) => state !== FORGOTTEN);
  }

  /** Runs `work` while no agent can begin to work on the job. @throws JobtailError if one does */
  async whileFree(jobId: JobId, work: () => void | Promise<void>): Promise<void> {
    await this.#database.transaction(async (sql) => {
      await lockFree(sql, jobId);
      await work();
    });
  }

  /** Removes all rows of a job without an owner. @throws JobtailError usage if an agent works on it */
  async forget(jobId: JobId): Promise<void> {
    await this.#database.transaction((sql) => forgetRows(sql, jobId));
  }

  async setRule(rule: WatchMineRow | undefined): Promise<void> {
    if (rule === undefined) await this.#database.query('DELETE FROM {s}.rules');
    else {
      await this.#database.query(
        'INSERT INTO {s}.rules (one, rule) VALUES (1, $1) ON CONFLICT (one) DO UPDATE SET rule = excluded.rule',
        [JSON.stringify(rule)],
      );
    }
    await this.commands.notify(this.#database);
  }

  async close(): Promise<void> {
    this.#copy.close();
    await this.disconnect();
  }

  /** The store of `jobs` stays. */
  async disconnect(): Promise<void> {
    await this.#database.close();
  }
}

/** Reads a fleet, one read after the other. After a failure it reads the address again, which may have changed. */
export class FleetReader {
  readonly #address: () => Promise<FleetAddress>;
  readonly #copy: FleetCopy;
  #client: FleetClient | undefined;

  constructor(address: () => Promise<FleetAddress>, service: string) {
    this.#address = address;
    this.#copy = new FleetCopy(service);
  }

  async read<T>(work: (client: FleetClient) => T | Promise<T>): Promise<T> {
    try {
      this.#client ??= await FleetClient.openReadOnly(await this.#address(), this.#copy);
      return await work(this.#client);
    } catch (thrown) {
      await this.#disconnect();
      throw thrown;
    }
  }

  async close(): Promise<void> {
    await this.#disconnect();
    this.#copy.close();
  }

  async #disconnect(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    await client?.disconnect();
  }
}

interface ServerRow {
  /** As the server reports it: `15.18`. */
  readonly version: string;
  readonly isNewEnough: boolean;
  readonly isEncrypted: boolean;
  /** Whether the connection is a local socket or loopback. */
  readonly isHere: boolean;
  readonly mayCreate: boolean;
  readonly aheadMs: number;
}

/** PostgreSQL 13, in the numbers of `server_version_num`. */
const OLDEST = 130_000;

/** @throws JobtailError fleet; config if the tables are those of a newer version */
export async function readFleet(address: FleetAddress) {
  const database = await Database.open(address, { name: 'check' });
  try {
    const format = await versionOf(database);
    const agents = format === 0 ? [] : await new FleetAgents(database).all();
    const [server] = await database.query<ServerRow>(
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
