/** The database of the fleet: SQL and transactions in its schema. */
import { JobtailError } from '../../errors.ts';
import { type Secrets, safeText } from '../../redact.ts';
import { Border } from '../rows/border.ts';
import {
  type ConnectionOptions,
  type ConnectionPool,
  connectionsTo,
  type DatabaseSession,
  type Listener,
} from './connections.ts';
import type { Queries, Tables } from './tables.ts';

export interface FleetAddress {
  readonly url: string;
  readonly schema: string;
  readonly secrets: Secrets;
  /** Called with each row that is malformed, or of an unknown kind: it is ignored. */
  readonly onIgnored?: (what: string) => void;
  /** Opens the connections; `pg` if omitted. */
  readonly connect?: (options: ConnectionOptions) => Promise<ConnectionPool>;
}

const MAX_CONNECTIONS = 3;

export class Database implements Tables {
  readonly schema: string;
  readonly where: string;
  readonly border: Border;
  readonly #connections: ConnectionPool;
  readonly #secrets: Secrets;

  private constructor(connections: ConnectionPool, { url, schema, secrets, onIgnored = () => {} }: FleetAddress) {
    this.border = new Border(onIgnored);
    this.where = whereOf(url);
    this.schema = schema;
    this.#connections = connections;
    this.#secrets = secrets;
  }

  /** `prepare` upgrades or checks the tables. @throws JobtailError fleet, config */
  static async open(
    address: FleetAddress,
    { name, max = MAX_CONNECTIONS, listener }: { name: string; max?: number; listener?: Listener | undefined },
    prepare: (database: Database) => Promise<void> = async () => {},
  ): Promise<Database> {
    const { url, secrets, connect = connectionsTo } = address;
    requireEscapes(url);
    const password = passwordOf(url);
    if (password !== '') secrets.add('sign-in', password);
    const database = new Database(await connect({ url, name, max, listener }), address);
    try {
      await prepare(database);
      return database;
    } catch (error) {
      await database.close();
      throw error;
    }
  }

  query<Row = unknown>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    return this.#run(this.#connections, text, values);
  }

  /** Runs `work` in a transaction; rolls back and rethrows what it throws. */
  async transaction<T>(work: (sql: Queries) => Promise<T>): Promise<T> {
    const session = await this.#try(() => this.#connections.connect());
    const query: Queries['query'] = (text, values) => this.#run(session, text, values);
    try {
      await query('BEGIN');
      const result = await work({ query });
      await query('COMMIT');
      session.release();
      return result;
    } catch (error) {
      session.release(error instanceof Error ? error : new Error(String(error)));
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#connections.end().catch(() => {});
  }

  #run<Row>(on: ConnectionPool | DatabaseSession, text: string, values?: readonly unknown[]): Promise<Row[]> {
    return this.#try(async () => (await on.query(text.replaceAll('{s}', this.schema), values)).rows as Row[]);
  }

  async #try<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw asFleetError(error, this.where, this.#secrets);
    }
  }
}

function whereOf(url: string): string {
  if (!URL.canParse(url)) return 'its address is none';
  const { hostname, port, pathname, searchParams } = new URL(url);
  const host = hostname || searchParams.get('host') || 'this machine';
  return `${host}${port === '' ? '' : `:${port}`}${pathname === '/' ? '' : pathname}`;
}

/** `pg` decodes all parts of an address. */
function requireEscapes(url: string): void {
  try {
    decodeURIComponent(url);
  } catch {
    const message = 'the address of the database of the fleet has a % that begins no escape';
    throw new JobtailError('config', message, { hint: 'write %25 for a % in its password' });
  }
}

function passwordOf(url: string): string {
  if (!URL.canParse(url)) return url;
  const { password, searchParams } = new URL(url);
  return decodeURIComponent(password) || (searchParams.get('password') ?? '');
}

/** SQLSTATE classes and codes (PostgreSQL, appendix A), and error codes of the connection. */
const HINTS: readonly (readonly [code: RegExp, hint: string])[] = [
  [/^28/, 'check the user and the password of the address, and pg_hba.conf of the server'],
  [/^3D000$/, 'make the database: createdb -O USER DATABASE (docs/fleet.md)'],
  [/^42501$/, 'give the user of the agents the right to create a schema in the database (docs/fleet.md)'],
  [/^53300$/, 'raise max_connections of the server: an agent takes four'],
  [
    /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ETIMEDOUT|ENOENT)$/,
    'check the address, and whether the server runs',
  ],
  [
    /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_|CERT_|ERR_TLS)/,
    'name the authority with sslrootcert= in the address',
  ],
];
const USUAL_HINT = 'check it with agent check; the agent continues when it is back, a command must be run again';

function asFleetError(thrown: unknown, where: string, secrets: Secrets): JobtailError {
  if (thrown instanceof JobtailError) return thrown;
  const { code, message } = wordsOf(thrown);
  const hint = HINTS.find(([known]) => known.test(code))?.[1] ?? USUAL_HINT;
  // Without `cause`: what the driver throws may contain the address.
  const text = `the database of the fleet (${where}) cannot be used: ${secrets.safeText(message)}`;
  return new JobtailError('fleet', text, { hint });
}

function wordsOf(thrown: unknown): { readonly code: string; readonly message: string } {
  // A host with several addresses has one failure for each.
  const one = thrown instanceof AggregateError ? (thrown.errors[0] as unknown) : thrown;
  if (!(one instanceof Error)) return { code: '', message: safeText(String(one), []) };
  const { code } = one as NodeJS.ErrnoException;
  return { code: typeof code === 'string' ? code : '', message: one.message || String(code ?? one.name) };
}
