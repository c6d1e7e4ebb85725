/**
 * The tables of the fleet, and the numbered migrations: entry n upgrades version n to n + 1. A released entry is never
 * changed. A new version of pg-boss also needs a new entry. `{s}` is the schema. Columns are `json`, never `jsonb`:
 * names may contain U+0000, which jsonb refuses.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { PgDatabase } from 'pg-boss';
import { JobtailError } from '../errors.ts';

export interface Sql {
  query<Row = unknown>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  readonly db: PgDatabase;
}

export interface Tables extends Sql {
  readonly schema: string;
  readonly where: string;
  transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T>;
}

/** Maximum wait for another agent that creates the tables. */
const MAX_WAIT_MS = 60_000;
const TICK_MS = 200;

const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE {s}.agents (
    name       text PRIMARY KEY,
    state_id   text NOT NULL,
    instance   text NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    seen_at    timestamptz NOT NULL DEFAULT now(),
    lease_ms   integer NOT NULL,
    is_ended   boolean NOT NULL DEFAULT false,
    is_draining boolean NOT NULL DEFAULT false,
    drain_asked boolean NOT NULL DEFAULT false,
    most_jobs  integer NOT NULL,
    lag_ms     bigint,
    calls_last_minute integer NOT NULL DEFAULT 0,
    about      json NOT NULL
  );
  CREATE TABLE {s}.jobs (
    job_id      text PRIMARY KEY,
    state       text NOT NULL DEFAULT 'ordered',
    source      text NOT NULL DEFAULT 'command',
    owner       text,
    attempt     integer NOT NULL DEFAULT 0,
    boss_id     uuid,
    retry_count integer NOT NULL DEFAULT 0,
    taken_at    timestamptz,
    mirror      text
  );
  CREATE INDEX jobs_by_owner ON {s}.jobs (owner) WHERE owner IS NOT NULL;
  CREATE TABLE {s}.rows (
    job_id text NOT NULL REFERENCES {s}.jobs ON DELETE CASCADE,
    kind   text NOT NULL,
    key    text NOT NULL,
    row    json NOT NULL,
    PRIMARY KEY (job_id, kind, key)
  );
  CREATE TABLE {s}.orders (
    order_id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id     text NOT NULL REFERENCES {s}.jobs ON DELETE CASCADE,
    kind       text NOT NULL,
    body       json,
    made_at    timestamptz NOT NULL DEFAULT now(),
    is_applied boolean NOT NULL DEFAULT false,
    answer     json
  );
  CREATE INDEX orders_open ON {s}.orders (job_id, order_id) WHERE answer IS NULL;
  CREATE TABLE {s}.attempts (
    job_id   text NOT NULL,
    attempt  integer NOT NULL,
    agent    text NOT NULL,
    boss_id  uuid NOT NULL,
    taken_at timestamptz NOT NULL,
    ended_at timestamptz,
    how      text,
    PRIMARY KEY (job_id, attempt)
  );
  CREATE INDEX attempts_open ON {s}.attempts (job_id) WHERE ended_at IS NULL;
  CREATE TABLE {s}.habits (
    service text NOT NULL,
    name    text NOT NULL,
    value   text NOT NULL,
    PRIMARY KEY (service, name)
  );
  CREATE TABLE {s}.rules (
    one  integer PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    rule json NOT NULL
  );
  CREATE TABLE {s}.configured (
    agent  text NOT NULL,
    job_id text NOT NULL,
    job_order json NOT NULL,
    PRIMARY KEY (agent, job_id)
  );
  CREATE TABLE {s}.budgets (
    name      text PRIMARY KEY,
    next_slot timestamptz NOT NULL
  );
  `,
  // One lease for each agent replaces one for each job; its row also has what the agent lacks.
  `
  ALTER TABLE {s}.jobs DROP COLUMN boss_id, DROP COLUMN retry_count;
  ALTER TABLE {s}.attempts DROP COLUMN boss_id;
  ALTER TABLE {s}.agents
    ADD COLUMN capacity     integer,
    ADD COLUMN lacks        text,
    ADD COLUMN not_followed integer NOT NULL DEFAULT 0,
    ADD COLUMN took_at      timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN passed_over  integer NOT NULL DEFAULT 0,
    ADD COLUMN rests_until  timestamptz;
  -- Room for the next version of a row in its page: no index changes with it.
  ALTER TABLE {s}.agents SET (fillfactor = 50);
  ALTER TABLE {s}.budgets SET (fillfactor = 50);
  ALTER TABLE {s}.rows SET (fillfactor = 80);
  `,
  'ALTER TABLE {s}.agents ADD COLUMN mirror text',
  // Agents of the first version renew leases that pg-boss keeps. Those end here, and a lease begins for the jobs of each
  // agent, so that no other agent takes them before the last of these leases is over. An agent that joined without a format
  // cannot renew its row: the name of the constraint is what it logs.
  `
  DO $$ BEGIN
    IF to_regclass('{s}_boss.job') IS NOT NULL THEN DELETE FROM {s}_boss.job WHERE name = 'follow'; END IF;
  END $$;
  UPDATE {s}.agents SET seen_at = clock_timestamp();
  ALTER TABLE {s}.agents ADD COLUMN format integer;
  ALTER TABLE {s}.agents ADD CONSTRAINT "this agent is too old: install the newer version of jobtail"
    CHECK (format IS NOT NULL) NOT VALID;
  `,
];

export const FORMAT = MIGRATIONS.length;

/**
 * Safe when several agents start at once: they take turns, also for the tables of `makeOthers`. @throws JobtailError
 * config if the tables are newer
 */
export async function migrate(tables: Tables, makeOthers: () => Promise<void>): Promise<void> {
  const version = await versionOf(tables);
  if (version === MIGRATIONS.length) return makeOthers();
  requireKnown(tables, version);
  const endsAt = performance.now() + MAX_WAIT_MS;
  while (!(await migrateAlone(tables, makeOthers))) {
    if (performance.now() > endsAt)
      throw new JobtailError('fleet', `another agent still makes the tables (${tables.where})`);
    await sleep(TICK_MS);
  }
}

function migrateAlone(tables: Tables, makeOthers: () => Promise<void>): Promise<boolean> {
  return tables.transaction(async ({ query }) => {
    const [lock] = await query<{ readonly isOurs: boolean }>(
      `SELECT pg_try_advisory_xact_lock(hashtextextended('jobtail {s}'::text, 0::bigint)) AS "isOurs"`,
    );
    if (lock?.isOurs !== true) return false;
    // The transaction is idle while pg-boss creates its tables.
    await query('SET LOCAL idle_in_transaction_session_timeout = 0');
    await query(`CREATE SCHEMA IF NOT EXISTS {s}`);
    await query(
      `CREATE TABLE IF NOT EXISTS {s}.version (one integer PRIMARY KEY CHECK (one = 1), version integer NOT NULL)`,
    );
    const [found] = await query<{ version: number }>('SELECT version FROM {s}.version');
    const from = found?.version ?? 0;
    requireKnown(tables, from);
    for (const sql of MIGRATIONS.slice(from)) await query(sql);
    await query(
      'INSERT INTO {s}.version (one, version) VALUES (1, $1) ON CONFLICT (one) DO UPDATE SET version = excluded.version',
      [MIGRATIONS.length],
    );
    await makeOthers();
    return true;
  });
}

/** 0 where there are no tables. */
export async function versionOf(tables: Tables): Promise<number> {
  const [there] = await tables.query<{ found: string | null }>(`SELECT to_regclass('{s}.version') AS found`);
  if (there?.found == null) return 0;
  const [row] = await tables.query<{ version: number }>('SELECT version FROM {s}.version');
  return row?.version ?? 0;
}

/** For a process that only reads. @throws JobtailError fleet, config */
export async function requireCurrent(tables: Tables): Promise<void> {
  const version = await versionOf(tables);
  requireKnown(tables, version);
  if (version === MIGRATIONS.length) return;
  const lacking = version === 0 ? 'has no tables of a fleet yet' : 'has the tables of an older version';
  throw new JobtailError('fleet', `the database of the fleet (${tables.where}, schema ${tables.schema}) ${lacking}`, {
    hint: 'start an agent of this version (agent run): it makes the tables, or brings them up to date',
  });
}

/** @throws JobtailError config */
export function requireKnown({ where, schema }: Tables, version: number): void {
  if (version <= MIGRATIONS.length) return;
  throw new JobtailError(
    'config',
    `the tables of the fleet (${where}, schema ${schema}) were made by a newer version of the agent (their format is ${version})`,
    { hint: `this version supports formats up to ${MIGRATIONS.length}: install the newer agent here, too` },
  );
}
