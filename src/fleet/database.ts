/**
 * The database of the fleet: SQL, transactions and notifications, on the connections of pg-boss. Every query has a time
 * limit.
 */
import type { PgBoss, PgDatabase, PgPool } from 'pg-boss';
import { JobtailError as Failure, JobtailError } from '../errors.ts';
import { Secrets, safeText } from '../redact.ts';
import '../system/network.ts';
import { Border } from './border.ts';
import { migrate, type Sql, type Tables } from './tables.ts';

/** Loads the package that reaches PostgreSQL. */
export type Driver = () => Promise<Pick<typeof import('pg-boss'), 'PgBoss'>>;

export interface DatabaseOptions {
  readonly url: string;
  /** Schema of the tables here; the tables of pg-boss are in `<schema>_boss`. */
  readonly schema: string;
  readonly name: string;
  readonly secrets?: Secrets;
  readonly connections?: number;
  /** Called with each row that is malformed, or of an unknown kind: it is ignored. */
  readonly onIgnored?: (what: string) => void;
  readonly driver?: Driver;
}

/** Limit for one response: the lease of a 10 s heartbeat must outlast two of them. */
const QUERY_MS = 4_000;
const MAX_CONNECTIONS = 3;
/**
 * The limit for idle transactions: a process that stands still must not block takeovers. The search path: objects that
 * another role puts into `public` must never be found.
 */
const SESSION = '-c idle_in_transaction_session_timeout=5000 -c search_path=pg_catalog,pg_temp';

export class Database implements Tables {
  readonly schema: string;
  readonly where: string;
  readonly boss: PgBoss;
  readonly border: Border;
  readonly #pool: PgPool;
  readonly #secrets: Secrets;

  private constructor(boss: PgBoss, where: string, options: DatabaseOptions) {
    const { schema, secrets = new Secrets(), onIgnored = () => {} } = options;
    this.border = new Border(onIgnored);
    this.boss = boss;
    this.where = where;
    this.schema = schema;
    this.#pool = boss.getDb();
    this.#secrets = secrets;
  }

  /** Connects, and upgrades the tables to the format of this version. @throws JobtailError fleet, config */
  static async open(options: DatabaseOptions): Promise<Database> {
    const database = await Database.connect(options);
    try {
      await migrate(database, () => database.#try(async () => void (await database.boss.start())));
      return database;
    } catch (error) {
      await database.close();
      throw database.#failure(error);
    }
  }

  /** Connects, and changes nothing. @throws JobtailError fleet */
  static async connect(options: DatabaseOptions): Promise<Database> {
    const { url, schema, name, secrets, connections = MAX_CONNECTIONS, driver = () => import('pg-boss') } = options;
    const password = passwordOf(url);
    if (password !== '') secrets?.add('sign-in', password);
    const { PgBoss } = await driver().catch((cause: unknown) => {
      throw missing(cause);
    });
    const boss = new PgBoss({
      ...{ connectionString: url, schema: `${schema}_boss`, application_name: `jobtail ${name}`, max: connections },
      ...{ supervise: false, schedule: false, monitorIntervalSeconds: 5 },
      ...{ query_timeout: QUERY_MS, connectionTimeoutMillis: QUERY_MS, options: SESSION },
    });
    // The failed call also throws the error.
    boss.on('error', () => {});
    const database = new Database(boss, whereOf(url), options);
    await database.#try(() => database.#pool.open());
    return database;
  }

  get db(): PgDatabase {
    return this.#pool;
  }

  query<Row = unknown>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    return this.#try(async () => (await this.#pool.executeSql(this.#inSchema(text), values)).rows as Row[]);
  }

  /** Runs `work` in a transaction; rolls back and rethrows what it throws. */
  async transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    const { db, commit, rollback } = await this.#try(() => this.#pool.beginTransaction());
    const query = <Row>(text: string, values: readonly unknown[] = []) =>
      this.#try(async () => (await db.executeSql(this.#inSchema(text), values)).rows as Row[]);
    try {
      const result = await work({ db, query });
      await this.#try(commit);
      return result;
    } catch (error) {
      await rollback();
      throw error;
    }
  }

  /** Calls back for each notification, and after a connection loss: some may be missed. The result ends that. */
  listen(channel: string, onNotice: () => void, onReconnect: () => void): Promise<{ close(): Promise<void> }> {
    return this.#try(() => this.#pool.listen(`${this.schema}_${channel}`, onNotice, onReconnect));
  }

  call<T>(work: (boss: PgBoss) => Promise<T>): Promise<T> {
    return this.#try(() => work(this.boss));
  }

  async close(): Promise<void> {
    await this.boss.stop({ graceful: false }).catch(() => {});
    await this.#pool.close().catch(() => {});
  }

  #inSchema(text: string): string {
    return text.replaceAll('{s}', this.schema);
  }

  async #try<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw this.#failure(error);
    }
  }

  #failure(thrown: unknown): JobtailError {
    return thrown instanceof Failure ? thrown : asFleetError(thrown, this.where, this.#secrets);
  }
}

function missing(cause: unknown): Failure {
  const hint = 'install jobtail again with this Node.js (npm install -g), with optional packages';
  return new Failure('config', 'the package pg-boss, which a fleet needs, is missing or cannot be loaded', {
    hint,
    cause,
  });
}

function whereOf(url: string): string {
  if (!URL.canParse(url)) return 'its address is none';
  const { hostname, port, pathname, searchParams } = new URL(url);
  const host = hostname || searchParams.get('host') || 'this machine';
  return `${host}${port === '' ? '' : `:${port}`}${pathname === '/' ? '' : pathname}`;
}

function passwordOf(url: string): string {
  if (!URL.canParse(url)) return url;
  const { password, searchParams } = new URL(url);
  return decodeURIComponent(password) || (searchParams.get('password') ?? '');
}

/** SQLSTATE classes and codes (PostgreSQL, appendix A), and error codes of the connection. */
const HINTS: readonly (readonly [code: RegExp, hint: string])[] = [
  [/^28/, 'check the user and the password of the address, and at pg_hba.conf of the server'],
  [/^3D000$/, 'make the database: createdb -O USER DATABASE (docs/fleet.md)'],
  [/^42501$/, 'give the user of the agents the right to create a schema in the database (docs/fleet.md)'],
  [/^53300$/, 'raise max_connections of the server: an agent takes five'],
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
  return new JobtailError(
    'fleet',
    `the database of the fleet (${where}) cannot be used: ${secrets.safeText(message)}`,
    {
      hint,
    },
  );
}

function wordsOf(thrown: unknown): { readonly code: string; readonly message: string } {
  // A host with several addresses has one failure for each.
  const one = thrown instanceof AggregateError ? (thrown.errors[0] as unknown) : thrown;
  if (!(one instanceof Error)) return { code: '', message: safeText(String(one), []) };
  const { code } = one as NodeJS.ErrnoException;
  return { code: typeof code === 'string' ? code : '', message: one.message === '' ? String(code) : one.message };
}
