/** Connections to PostgreSQL, by the package `pg`. Every statement has a time limit. */
import type { Pool, PoolClient } from 'pg';
import '../../system/network.ts';
import { JobtailError } from '../../errors.ts';

export interface ConnectionOptions {
  readonly url: string;
  readonly name: string;
  readonly max: number;
  /** Only with one connection, which then stays open. */
  readonly listener?: Listener | undefined;
}

/** For notifications of a channel. Those between two connections are missed. */
export interface Listener {
  readonly channel: string;
  readonly onNotice: () => void;
  readonly onConnect: () => void;
}

export type DatabaseSession = Pick<PoolClient, 'query' | 'release'>;
export type ConnectionPool = Pick<Pool, 'query' | 'end'> & { connect(): Promise<DatabaseSession> };

/** Limit for one response: the lease of a 10 s heartbeat must outlast two of them. */
const QUERY_MS = 4_000;
/**
 * The limit for idle transactions: a process that stands still must not block takeovers. The search path: objects that
 * another role puts into `public` must never be found.
 */
const SESSION = '-c idle_in_transaction_session_timeout=5000 -c search_path=pg_catalog,pg_temp';

/** @throws JobtailError config if the package is missing */
export async function connectionsTo({ url, name, max, listener }: ConnectionOptions): Promise<ConnectionPool> {
  const pg = await import('pg').catch((cause: unknown) => {
    const hint = 'install jobtail again with this Node.js (npm install -g), with optional packages';
    const message = 'the package pg, which a fleet needs, is missing or cannot be loaded';
    throw new JobtailError('config', message, { hint, cause });
  });
  const pool = new pg.Pool({
    connectionString: url,
    application_name: `jobtail ${name}`,
    max,
    options: SESSION,
    query_timeout: QUERY_MS,
    connectionTimeoutMillis: QUERY_MS,
    keepAlive: true,
    onConnect: async (client: PoolClient) => {
      // The failed statement also throws the error.
      client.on('error', () => {});
      if (listener === undefined) return;
      client.on('notification', listener.onNotice);
      await client.query(`LISTEN "${listener.channel}"`);
      listener.onConnect();
    },
    ...(listener === undefined ? {} : { idleTimeoutMillis: 0 }),
  });
  pool.on('error', () => {});
  return pool;
}
