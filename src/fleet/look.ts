/** A look at the database of a fleet that changes nothing. */
import { Database } from './database.ts';
import type { FleetAddress } from './joined.ts';
import { requireKnown, versionOf } from './migrations.ts';
import { Register } from './register.ts';

export interface FleetLook {
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
export async function lookAtFleet(address: FleetAddress): Promise<FleetLook> {
  const database = await Database.connect({ ...address, name: 'check' });
  try {
    const format = await versionOf(database);
    requireKnown(database, format);
    const agents = format === 0 ? [] : await new Register(database).all();
    const [server] = await database.query<Omit<FleetLook, 'where' | 'hasTables' | 'agents'>>(
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
