/**
 * The tables of the fleet. The first entry of `MIGRATIONS` creates those of format 4, which is that of version 0.2.0; each
 * other one upgrades them by one. A released entry is never changed. `{s}` is the schema. Columns are `json`, never
 * `jsonb`: names may contain U+0000, which jsonb refuses.
 */
import { JobtailError } from '../../errors.ts';

export interface Queries {
  query<Row = unknown>(text: string, values?: readonly unknown[]): Promise<Row[]>;
}

export interface Tables extends Queries {
  readonly schema: string;
  readonly where: string;
  transaction<T>(work: (sql: Queries) => Promise<T>): Promise<T>;
}

const OLDEST_FORMAT = 4;
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
    about      json NOT NULL,
    capacity     integer,
    lacks        text,
    not_followed integer NOT NULL DEFAULT 0,
    took_at      timestamptz NOT NULL DEFAULT now(),
    passed_over  integer NOT NULL DEFAULT 0,
    rests_until  timestamptz,
    mirror       text,
    format       integer
    -- Room for the next version of a row in its page: no index changes with it.
  ) WITH (fillfactor = 50);
  CREATE TABLE {s}.jobs (
    job_id      text PRIMARY KEY,
    state       text NOT NULL DEFAULT 'ordered',
    source      text NOT NULL DEFAULT 'command',
    owner       text,
    attempt     integer NOT NULL DEFAULT 0,
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
  ) WITH (fillfactor = 80);
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
  ) WITH (fillfactor = 50);
  `,
  // Agents of version 0.2.0 take the jobs without an owner from a queue of pg-boss, and put them there. They can do neither
  // from now on, nor renew their leases: the name of the constraint is what they log. Their jobs wait when these expire.
  `
  ALTER TABLE {s}.jobs ADD COLUMN waiting_since timestamptz;
  DO $$ BEGIN
    IF to_regclass('{s}_boss.job') IS NOT NULL THEN
      UPDATE {s}.jobs SET waiting_since = start_after FROM {s}_boss.job
        WHERE name = 'waiting' AND singleton_key = job_id AND owner IS NULL;
    END IF;
  END $$;
  UPDATE {s}.jobs SET waiting_since = now() WHERE owner IS NULL AND waiting_since IS NULL AND (state IN ('watched', 'ending')
    OR EXISTS (SELECT 1 FROM {s}.orders WHERE orders.job_id = jobs.job_id AND answer IS NULL));
  DROP SCHEMA IF EXISTS {s}_boss CASCADE;
  DROP TABLE {s}.budgets;
  ALTER TABLE {s}.agents DROP COLUMN took_at, DROP COLUMN passed_over, DROP COLUMN rests_until;
  -- Columns and keys have other names than in 0.2.0.
  UPDATE {s}.rows SET row = regexp_replace(row::text, '"told_at" *:', '"reported_at":')::json WHERE kind = 'job_information';
  UPDATE {s}.rows SET row = regexp_replace(row::text, '"unkept" *:', '"without_row":')::json WHERE kind = 'result_counts';
  UPDATE {s}.rows SET row = regexp_replace(regexp_replace(row::text, '"looked_at" *:', '"searched_at":'),
    '"next_look_at" *:', '"next_search_at":')::json WHERE kind = 'task_searches';
  UPDATE {s}.rows SET key = encode(sha256(convert_to(key, 'UTF8')), 'hex') WHERE octet_length(key) > 2000;
  UPDATE {s}.rules SET rule = regexp_replace(rule::text, '"mostJobs" *:', '"maxJobs":')::json;
  ALTER TABLE {s}.jobs ADD CONSTRAINT waits_without_owner CHECK (owner IS NULL OR waiting_since IS NULL);
  CREATE INDEX jobs_waiting ON {s}.jobs (waiting_since) WHERE waiting_since IS NOT NULL;
  ALTER TABLE {s}.agents DROP CONSTRAINT IF EXISTS "this agent is too old: install the newer version of jobtail";
  ALTER TABLE {s}.agents ADD CONSTRAINT "this agent is too old: install the newer version of jobtail"
    CHECK (format IS NOT NULL AND format >= 5) NOT VALID;
  `,
];

export const FORMAT = OLDEST_FORMAT + MIGRATIONS.length - 1;

/** Safe when several agents start at once: they take turns. @throws JobtailError config if the tables are newer, or too old */
export async function migrate(tables: Tables): Promise<void> {
  if ((await versionOf(tables)) === FORMAT) return;
  await tables.transaction(async (sql) => {
    await sql.query(`SELECT pg_advisory_xact_lock(hashtextextended('jobtail {s}'::text, 0::bigint))`);
    await sql.query(`CREATE SCHEMA IF NOT EXISTS {s}`);
    await sql.query(
      `CREATE TABLE IF NOT EXISTS {s}.version (one integer PRIMARY KEY CHECK (one = 1), version integer NOT NULL)`,
    );
    const version = await versionOf(tables, sql);
    for (const upgrade of MIGRATIONS.slice(version === 0 ? 0 : version - OLDEST_FORMAT + 1)) await sql.query(upgrade);
    await sql.query(
      'INSERT INTO {s}.version (one, version) VALUES (1, $1) ON CONFLICT (one) DO UPDATE SET version = excluded.version',
      [FORMAT],
    );
  });
}

/** 0 where there are no tables. @throws JobtailError config if they are newer, or too old */
export async function versionOf(tables: Tables, sql: Queries = tables): Promise<number> {
  const [there] = await sql.query<{ found: string | null }>(`SELECT to_regclass('{s}.version') AS found`);
  if (there?.found == null) return 0;
  const [{ version } = { version: 0 }] = await sql.query<{ version: number }>('SELECT version FROM {s}.version');
  const isOlder = version > 0 && version < OLDEST_FORMAT;
  if (version <= FORMAT && !isOlder) return version;
  const by = `by ${isOlder ? 'a version of the agent before 0.2.0' : 'a newer version of the agent'}`;
  throw new JobtailError(
    'config',
    `the tables of the fleet (${tables.where}, schema ${tables.schema}) were made ${by} (their format is ${version})`,
    {
      hint: isOlder
        ? 'start an agent of version 0.2.0 once: it upgrades them; or set another fleet.schema and watch the jobs again'
        : `this version supports formats up to ${FORMAT}: install the newer agent here, too`,
    },
  );
}

/** For a process that only reads. @throws JobtailError fleet, config */
export async function requireCurrent(tables: Tables): Promise<void> {
  const version = await versionOf(tables);
  if (version === FORMAT) return;
  const lacking = version === 0 ? 'has no tables of a fleet yet' : 'has the tables of an older version';
  throw new JobtailError('fleet', `the database of the fleet (${tables.where}, schema ${tables.schema}) ${lacking}`, {
    hint: 'start an agent of this version (agent run): it makes the tables, or brings them up to date',
  });
}
