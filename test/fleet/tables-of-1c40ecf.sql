SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE SCHEMA jobtail;
CREATE SCHEMA jobtail_boss;
CREATE TYPE jobtail_boss.job_state AS ENUM (
    'created',
    'retry',
    'active',
    'completed',
    'cancelled',
    'failed'
);
CREATE FUNCTION jobtail_boss.create_queue(queue_name text, options jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $_$
    DECLARE
      tablename varchar := CASE WHEN options->>'partition' = 'true'
                            THEN 'j' || encode(sha224(queue_name::bytea), 'hex')
                            ELSE 'job_common'
                            END;
      queue_created_on timestamptz;
    BEGIN
      WITH q as (
        INSERT INTO jobtail_boss.queue (
          name,
          policy,
          retry_limit,
          retry_delay,
          retry_backoff,
          retry_delay_max,
          expire_seconds,
          retention_seconds,
          deletion_seconds,
          warning_queued,
          dead_letter,
          partition,
          table_name,
          heartbeat_seconds,
          notify,
          created_on,
          updated_on
        )
        VALUES (
          queue_name,
          options->>'policy',
          COALESCE((options->>'retryLimit')::int, 2),
          COALESCE((options->>'retryDelay')::int, 0),
          COALESCE((options->>'retryBackoff')::bool, false),
          (options->>'retryDelayMax')::int,
          COALESCE((options->>'expireInSeconds')::int, 900),
          COALESCE((options->>'retentionSeconds')::int, 1209600),
          COALESCE((options->>'deleteAfterSeconds')::int, 604800),
          COALESCE((options->>'warningQueueSize')::int, 0),
          options->>'deadLetter',
          COALESCE((options->>'partition')::bool, false),
          tablename,
          (options->>'heartbeatSeconds')::int,
          COALESCE((options->>'notify')::bool, false),
          jobtail_boss.job_now(),
          jobtail_boss.job_now()
        )
        ON CONFLICT DO NOTHING
        RETURNING created_on
      )
      SELECT created_on into queue_created_on from q;
      IF queue_created_on IS NULL OR options->>'partition' IS DISTINCT FROM 'true' THEN
        RETURN;
      END IF;
      EXECUTE format('CREATE TABLE jobtail_boss.%I (LIKE jobtail_boss.job INCLUDING DEFAULTS)', tablename);
      EXECUTE jobtail_boss.job_table_format($cmd$ALTER TABLE jobtail_boss.job ADD PRIMARY KEY (name, id)$cmd$, tablename);
      EXECUTE jobtail_boss.job_table_format($cmd$ALTER TABLE jobtail_boss.job ADD CONSTRAINT q_fkey FOREIGN KEY (name) REFERENCES jobtail_boss.queue (name) ON DELETE RESTRICT DEFERRABLE INITIALLY DEFERRED$cmd$, tablename);
      EXECUTE jobtail_boss.job_table_format($cmd$ALTER TABLE jobtail_boss.job ADD CONSTRAINT dlq_fkey FOREIGN KEY (dead_letter) REFERENCES jobtail_boss.queue (name) ON DELETE RESTRICT DEFERRABLE INITIALLY DEFERRED$cmd$, tablename);
      EXECUTE jobtail_boss.job_table_format($cmd$CREATE INDEX job_i11 ON jobtail_boss.job (name, priority DESC, created_on, start_after) WHERE state < 'active' AND NOT blocked$cmd$, tablename);
      EXECUTE jobtail_boss.job_table_format($cmd$CREATE UNIQUE INDEX job_i4 ON jobtail_boss.job (name, singleton_on, COALESCE(singleton_key, '')) WHERE state <> 'cancelled' AND singleton_on IS NOT NULL$cmd$, tablename);
      EXECUTE jobtail_boss.job_table_format($cmd$CREATE INDEX job_i7 ON jobtail_boss.job (name, group_id) WHERE state = 'active' AND group_id IS NOT NULL$cmd$, tablename);
      EXECUTE jobtail_boss.job_table_format($cmd$CREATE INDEX job_i9 ON jobtail_boss.job (name, id) WHERE blocking AND state = 'completed'$cmd$, tablename);
      EXECUTE jobtail_boss.job_table_format($cmd$CREATE INDEX job_i12 ON jobtail_boss.job (source_root_id) WHERE source_root_id IS NOT NULL$cmd$, tablename);
      IF options->>'policy' = 'short' THEN
        EXECUTE jobtail_boss.job_table_format($cmd$CREATE UNIQUE INDEX job_i1 ON jobtail_boss.job (name, COALESCE(singleton_key, '')) WHERE state = 'created' AND policy = 'short'$cmd$, tablename);
      ELSIF options->>'policy' = 'singleton' THEN
        EXECUTE jobtail_boss.job_table_format($cmd$CREATE UNIQUE INDEX job_i2 ON jobtail_boss.job (name, COALESCE(singleton_key, '')) WHERE state = 'active' AND policy = 'singleton'$cmd$, tablename);
      ELSIF options->>'policy' = 'stately' THEN
        EXECUTE jobtail_boss.job_table_format($cmd$CREATE UNIQUE INDEX job_i3 ON jobtail_boss.job (name, state, COALESCE(singleton_key, '')) WHERE state <= 'active' AND policy = 'stately'$cmd$, tablename);
      ELSIF options->>'policy' = 'exclusive' THEN
        EXECUTE jobtail_boss.job_table_format($cmd$CREATE UNIQUE INDEX job_i6 ON jobtail_boss.job (name, COALESCE(singleton_key, '')) WHERE state <= 'active' AND policy = 'exclusive'$cmd$, tablename);
      ELSIF options->>'policy' = 'key_strict_fifo' THEN
        EXECUTE jobtail_boss.job_table_format($cmd$CREATE UNIQUE INDEX job_i8 ON jobtail_boss.job (name, singleton_key) WHERE state IN ('active', 'retry', 'failed') AND policy = 'key_strict_fifo'$cmd$, tablename);
        EXECUTE jobtail_boss.job_table_format($cmd$CREATE INDEX job_i10 ON jobtail_boss.job (name, singleton_key, state DESC, created_on, id) INCLUDE (start_after) WHERE state < 'active' AND NOT blocked AND policy = 'key_strict_fifo'$cmd$, tablename);
        EXECUTE jobtail_boss.job_table_format($cmd$ALTER TABLE jobtail_boss.job ADD CONSTRAINT job_key_strict_fifo_singleton_key_check CHECK (NOT (policy = 'key_strict_fifo' AND singleton_key IS NULL))$cmd$, tablename);
      END IF;
      EXECUTE format('ALTER TABLE jobtail_boss.%I ADD CONSTRAINT cjc CHECK (name=%L)', tablename, queue_name);
      EXECUTE format('ALTER TABLE jobtail_boss.job ATTACH PARTITION jobtail_boss.%I FOR VALUES IN (%L)', tablename, queue_name);
    END;
    $_$;
CREATE FUNCTION jobtail_boss.delete_queue(queue_name text) RETURNS void
    LANGUAGE plpgsql
    AS $$
    DECLARE
      v_table varchar;
      v_partition bool;
    BEGIN
      
      SELECT table_name, partition
      FROM jobtail_boss.queue
      WHERE name = queue_name
      INTO v_table, v_partition;
      IF v_partition THEN
        EXECUTE format('DROP TABLE IF EXISTS jobtail_boss.%I', v_table);
      ELSE
        EXECUTE format('DELETE FROM jobtail_boss.%I WHERE name = %L', v_table, queue_name);
      END IF;
    
      DELETE FROM jobtail_boss.queue WHERE name = queue_name;
    END;
    $$;
CREATE FUNCTION jobtail_boss.job_now() RETURNS timestamp with time zone
    LANGUAGE sql STABLE
    AS $$
      SELECT pg_catalog.now();
    $$;
CREATE FUNCTION jobtail_boss.job_table_format(command text, table_name text) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $_$
      SELECT format(
        regexp_replace(
          regexp_replace(command, '\.job\y', '.%1$I', 'g'),
          '\yjob_i(\d+)', '%1$s_i\1', 'g'
        ),
        table_name
      );
    $_$;
CREATE FUNCTION jobtail_boss.job_table_run(command text, tbl_name text DEFAULT NULL::text, queue_name text DEFAULT NULL::text) RETURNS void
    LANGUAGE plpgsql
    AS $$
    DECLARE
      tbl RECORD;
    BEGIN
      IF queue_name IS NOT NULL THEN
        SELECT table_name INTO tbl_name FROM jobtail_boss.queue WHERE name = queue_name;
      END IF;
      IF tbl_name IS NOT NULL THEN
        EXECUTE jobtail_boss.job_table_format(command, tbl_name);
        RETURN;
      END IF;
      EXECUTE jobtail_boss.job_table_format(command, 'job_common');
      FOR tbl IN SELECT table_name FROM jobtail_boss.queue WHERE partition = true
      LOOP
        EXECUTE jobtail_boss.job_table_format(command, tbl.table_name);
      END LOOP;
    END;
    $$;
CREATE FUNCTION jobtail_boss.job_table_run_async(command_name text, version integer, command text, tbl_name text DEFAULT NULL::text, queue_name text DEFAULT NULL::text) RETURNS void
    LANGUAGE plpgsql
    AS $$
    BEGIN
      IF queue_name IS NOT NULL THEN
        SELECT table_name INTO tbl_name FROM jobtail_boss.queue WHERE name = queue_name;
      END IF;
      IF tbl_name IS NOT NULL THEN
        INSERT INTO jobtail_boss.bam (name, version, status, queue, table_name, command)
        VALUES (
          command_name,
          version,
          'pending',
          queue_name,
          tbl_name,
          jobtail_boss.job_table_format(command, tbl_name)
        );
        RETURN;
      END IF;
      INSERT INTO jobtail_boss.bam (name, version, status, queue, table_name, command)
      SELECT
        command_name,
        version,
        'pending',
        NULL,
        'job_common',
        jobtail_boss.job_table_format(command, 'job_common')
      UNION ALL
      SELECT
        command_name,
        version,
        'pending',
        queue.name,
        queue.table_name,
        jobtail_boss.job_table_format(command, queue.table_name)
      FROM jobtail_boss.queue
      WHERE partition = true;
    END;
    $$;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE jobtail.agents (
    name text NOT NULL,
    state_id text NOT NULL,
    instance text NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL,
    seen_at timestamp with time zone DEFAULT now() NOT NULL,
    lease_ms integer NOT NULL,
    is_ended boolean DEFAULT false NOT NULL,
    is_draining boolean DEFAULT false NOT NULL,
    drain_asked boolean DEFAULT false NOT NULL,
    most_jobs integer NOT NULL,
    lag_ms bigint,
    calls_last_minute integer DEFAULT 0 NOT NULL,
    about json NOT NULL
);
CREATE TABLE jobtail.attempts (
    job_id text NOT NULL,
    attempt integer NOT NULL,
    agent text NOT NULL,
    boss_id uuid NOT NULL,
    taken_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    how text
);
CREATE TABLE jobtail.budgets (
    name text NOT NULL,
    next_slot timestamp with time zone NOT NULL
);
CREATE TABLE jobtail.configured (
    agent text NOT NULL,
    job_id text NOT NULL,
    job_order json NOT NULL
);
CREATE TABLE jobtail.habits (
    service text NOT NULL,
    name text NOT NULL,
    value text NOT NULL
);
CREATE TABLE jobtail.jobs (
    job_id text NOT NULL,
    state text DEFAULT 'ordered'::text NOT NULL,
    source text DEFAULT 'command'::text NOT NULL,
    owner text,
    attempt integer DEFAULT 0 NOT NULL,
    boss_id uuid,
    retry_count integer DEFAULT 0 NOT NULL,
    taken_at timestamp with time zone,
    mirror text
);
CREATE TABLE jobtail.orders (
    order_id bigint NOT NULL,
    job_id text NOT NULL,
    kind text NOT NULL,
    body json,
    made_at timestamp with time zone DEFAULT now() NOT NULL,
    is_applied boolean DEFAULT false NOT NULL,
    answer json
);
ALTER TABLE jobtail.orders ALTER COLUMN order_id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME jobtail.orders_order_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE jobtail.rows (
    job_id text NOT NULL,
    kind text NOT NULL,
    key text NOT NULL,
    "row" json NOT NULL
);
CREATE TABLE jobtail.rules (
    one integer DEFAULT 1 NOT NULL,
    rule json NOT NULL,
    CONSTRAINT rules_one_check CHECK ((one = 1))
);
CREATE TABLE jobtail.version (
    one integer NOT NULL,
    version integer NOT NULL,
    CONSTRAINT version_one_check CHECK ((one = 1))
);
CREATE TABLE jobtail_boss.bam (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name text NOT NULL,
    version integer NOT NULL,
    status text DEFAULT 'pending'::text NOT NULL,
    queue text,
    table_name text NOT NULL,
    command text NOT NULL,
    error text,
    created_on timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    started_on timestamp with time zone,
    completed_on timestamp with time zone
);
CREATE TABLE jobtail_boss.job (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name text NOT NULL,
    priority integer DEFAULT 0 NOT NULL,
    data jsonb,
    state jobtail_boss.job_state DEFAULT 'created'::jobtail_boss.job_state NOT NULL,
    retry_limit integer DEFAULT 2 NOT NULL,
    retry_count integer DEFAULT 0 NOT NULL,
    retry_delay integer DEFAULT 0 NOT NULL,
    retry_backoff boolean DEFAULT false NOT NULL,
    retry_delay_max integer,
    expire_seconds integer DEFAULT 900 NOT NULL,
    deletion_seconds integer DEFAULT 604800 NOT NULL,
    singleton_key text,
    singleton_on timestamp without time zone,
    group_id text,
    group_tier text,
    start_after timestamp with time zone DEFAULT now() NOT NULL,
    created_on timestamp with time zone DEFAULT now() NOT NULL,
    started_on timestamp with time zone,
    completed_on timestamp with time zone,
    keep_until timestamp with time zone DEFAULT (now() + '336:00:00'::interval) NOT NULL,
    output jsonb,
    dead_letter text,
    policy text,
    heartbeat_on timestamp with time zone,
    heartbeat_seconds integer,
    blocked boolean DEFAULT false NOT NULL,
    blocking boolean DEFAULT false NOT NULL,
    pending_dependencies integer DEFAULT 0 NOT NULL,
    source_name text,
    source_id uuid,
    source_created_on timestamp with time zone,
    source_retry_count integer,
    source_output jsonb,
    source_root_id uuid
)
PARTITION BY LIST (name);
CREATE TABLE jobtail_boss.job_common (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name text NOT NULL,
    priority integer DEFAULT 0 NOT NULL,
    data jsonb,
    state jobtail_boss.job_state DEFAULT 'created'::jobtail_boss.job_state NOT NULL,
    retry_limit integer DEFAULT 2 NOT NULL,
    retry_count integer DEFAULT 0 NOT NULL,
    retry_delay integer DEFAULT 0 NOT NULL,
    retry_backoff boolean DEFAULT false NOT NULL,
    retry_delay_max integer,
    expire_seconds integer DEFAULT 900 NOT NULL,
    deletion_seconds integer DEFAULT 604800 NOT NULL,
    singleton_key text,
    singleton_on timestamp without time zone,
    group_id text,
    group_tier text,
    start_after timestamp with time zone DEFAULT now() NOT NULL,
    created_on timestamp with time zone DEFAULT now() NOT NULL,
    started_on timestamp with time zone,
    completed_on timestamp with time zone,
    keep_until timestamp with time zone DEFAULT (now() + '336:00:00'::interval) NOT NULL,
    output jsonb,
    dead_letter text,
    policy text,
    heartbeat_on timestamp with time zone,
    heartbeat_seconds integer,
    blocked boolean DEFAULT false NOT NULL,
    blocking boolean DEFAULT false NOT NULL,
    pending_dependencies integer DEFAULT 0 NOT NULL,
    source_name text,
    source_id uuid,
    source_created_on timestamp with time zone,
    source_retry_count integer,
    source_output jsonb,
    source_root_id uuid,
    CONSTRAINT job_key_strict_fifo_singleton_key_check CHECK ((NOT ((policy = 'key_strict_fifo'::text) AND (singleton_key IS NULL))))
);
CREATE TABLE jobtail_boss.job_dependency (
    child_name text NOT NULL,
    child_id uuid NOT NULL,
    parent_name text NOT NULL,
    parent_id uuid NOT NULL
);
CREATE TABLE jobtail_boss.queue (
    name text NOT NULL,
    policy text NOT NULL,
    retry_limit integer NOT NULL,
    retry_delay integer NOT NULL,
    retry_backoff boolean NOT NULL,
    retry_delay_max integer,
    expire_seconds integer NOT NULL,
    retention_seconds integer NOT NULL,
    deletion_seconds integer NOT NULL,
    dead_letter text,
    partition boolean NOT NULL,
    table_name text NOT NULL,
    deferred_count integer DEFAULT 0 NOT NULL,
    queued_count integer DEFAULT 0 NOT NULL,
    ready_count integer DEFAULT 0 NOT NULL,
    warning_queued integer DEFAULT 0 NOT NULL,
    active_count integer DEFAULT 0 NOT NULL,
    failed_count integer DEFAULT 0 NOT NULL,
    total_count integer DEFAULT 0 NOT NULL,
    created_delta integer DEFAULT 0 NOT NULL,
    completed_delta integer DEFAULT 0 NOT NULL,
    failed_delta integer DEFAULT 0 NOT NULL,
    delta_on timestamp with time zone,
    delta_seconds integer,
    ready_history integer[] DEFAULT '{}'::integer[] NOT NULL,
    heartbeat_seconds integer,
    notify boolean DEFAULT false NOT NULL,
    singletons_active text[],
    monitor_claim_on timestamp with time zone,
    monitor_on timestamp with time zone,
    maintain_on timestamp with time zone,
    created_on timestamp with time zone DEFAULT now() NOT NULL,
    updated_on timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT queue_check CHECK ((dead_letter IS DISTINCT FROM name))
);
CREATE TABLE jobtail_boss.queue_stats (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name text NOT NULL,
    deferred_count integer DEFAULT 0 NOT NULL,
    queued_count integer DEFAULT 0 NOT NULL,
    ready_count integer DEFAULT 0 NOT NULL,
    active_count integer DEFAULT 0 NOT NULL,
    failed_count integer DEFAULT 0 NOT NULL,
    total_count integer DEFAULT 0 NOT NULL,
    created_delta integer,
    completed_delta integer,
    failed_delta integer,
    delta_seconds integer,
    delta_on timestamp with time zone,
    captured_on timestamp with time zone DEFAULT now() NOT NULL
)
PARTITION BY RANGE (captured_on);
CREATE TABLE jobtail_boss.queue_stats_20261123 (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name text NOT NULL,
    deferred_count integer DEFAULT 0 NOT NULL,
    queued_count integer DEFAULT 0 NOT NULL,
    ready_count integer DEFAULT 0 NOT NULL,
    active_count integer DEFAULT 0 NOT NULL,
    failed_count integer DEFAULT 0 NOT NULL,
    total_count integer DEFAULT 0 NOT NULL,
    created_delta integer,
    completed_delta integer,
    failed_delta integer,
    delta_seconds integer,
    delta_on timestamp with time zone,
    captured_on timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE jobtail_boss.queue_stats_20261124 (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    name text NOT NULL,
    deferred_count integer DEFAULT 0 NOT NULL,
    queued_count integer DEFAULT 0 NOT NULL,
    ready_count integer DEFAULT 0 NOT NULL,
    active_count integer DEFAULT 0 NOT NULL,
    failed_count integer DEFAULT 0 NOT NULL,
    total_count integer DEFAULT 0 NOT NULL,
    created_delta integer,
    completed_delta integer,
    failed_delta integer,
    delta_seconds integer,
    delta_on timestamp with time zone,
    captured_on timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE jobtail_boss.schedule (
    name text NOT NULL,
    key text DEFAULT ''::text NOT NULL,
    kind text DEFAULT 'cron'::text NOT NULL,
    cron text NOT NULL,
    timezone text DEFAULT 'UTC'::text,
    data jsonb,
    options jsonb,
    created_on timestamp with time zone DEFAULT now() NOT NULL,
    updated_on timestamp with time zone DEFAULT now() NOT NULL,
    last_job_id uuid,
    CONSTRAINT schedule_kind_check CHECK ((kind = ANY (ARRAY['cron'::text, 'rrule'::text])))
);
CREATE TABLE jobtail_boss.subscription (
    event text NOT NULL,
    name text NOT NULL,
    created_on timestamp with time zone DEFAULT now() NOT NULL,
    updated_on timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE jobtail_boss.version (
    version integer NOT NULL,
    cron_on timestamp with time zone,
    bam_on timestamp with time zone,
    flow_on timestamp with time zone,
    reindex_on timestamp with time zone,
    monitor_backoff_on timestamp with time zone
);
CREATE TABLE jobtail_boss.warning (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    type text NOT NULL,
    message text NOT NULL,
    data jsonb,
    created_on timestamp with time zone DEFAULT now() NOT NULL
);
ALTER TABLE ONLY jobtail_boss.job ATTACH PARTITION jobtail_boss.job_common DEFAULT;
ALTER TABLE ONLY jobtail_boss.queue_stats ATTACH PARTITION jobtail_boss.queue_stats_20261123 FOR VALUES FROM ('2026-11-23 00:00:00+00') TO ('2026-11-24 00:00:00+00');
ALTER TABLE ONLY jobtail_boss.queue_stats ATTACH PARTITION jobtail_boss.queue_stats_20261124 FOR VALUES FROM ('2026-11-24 00:00:00+00') TO ('2026-11-25 00:00:00+00');
INSERT INTO jobtail.agents VALUES ('anna', '088d5f92-e5f8-4a1e-9268-e48ffa536b73', '006e66fd-8673-4a6e-94fe-c6d93de530ed', '2026-11-23 06:53:04.043918+00', '2026-11-23 06:53:07.757414+00', 10000, false, false, false, 2000, NULL, 0, '{"host":"here","pid":19079,"version":"0"}');
INSERT INTO jobtail.attempts VALUES ('1', 1, 'anna', '94ba0574-0a84-4099-9be7-6475fc8d0d04', '2026-11-23 06:53:04.291615+00', NULL, NULL);
INSERT INTO jobtail.attempts VALUES ('2', 1, 'anna', '44d37d6e-fe5c-40b5-8dc2-d2e9f999cdc7', '2026-11-23 06:53:04.291747+00', NULL, NULL);
INSERT INTO jobtail.attempts VALUES ('3', 1, 'anna', 'da73cfc1-8796-4280-b070-2dd4d5bd890a', '2026-11-23 06:53:04.291755+00', NULL, NULL);
INSERT INTO jobtail.jobs VALUES ('1', 'watched', 'command', 'anna', 1, '94ba0574-0a84-4099-9be7-6475fc8d0d04', 0, '2026-11-23 06:53:04.291615+00', 'shared');
INSERT INTO jobtail.jobs VALUES ('2', 'watched', 'command', 'anna', 1, '44d37d6e-fe5c-40b5-8dc2-d2e9f999cdc7', 0, '2026-11-23 06:53:04.291747+00', 'shared');
INSERT INTO jobtail.jobs VALUES ('3', 'watched', 'command', 'anna', 1, 'da73cfc1-8796-4280-b070-2dd4d5bd890a', 0, '2026-11-23 06:53:04.291755+00', 'shared');
INSERT INTO jobtail.orders OVERRIDING SYSTEM VALUE VALUES (1, '1', 'watch', '{"jobId":"1","tasks":["9001"],"files":["stdout","stderr","log","progress"],"results":false,"settleAfterMs":null,"source":"command"}', '2026-11-23 06:53:03.518347+00', true, '{}');
INSERT INTO jobtail.orders OVERRIDING SYSTEM VALUE VALUES (2, '2', 'watch', '{"jobId":"2","tasks":["9001"],"files":["stdout","stderr","log","progress"],"results":false,"settleAfterMs":null,"source":"command"}', '2026-11-23 06:53:03.73113+00', true, '{}');
INSERT INTO jobtail.orders OVERRIDING SYSTEM VALUE VALUES (3, '3', 'watch', '{"jobId":"3","tasks":["9001"],"files":["stdout","stderr","log","progress"],"results":false,"settleAfterMs":null,"source":"command"}', '2026-11-23 06:53:03.762427+00', true, '{}');
INSERT INTO jobtail.rows VALUES ('1', 'jobs', '[]', '{"job_id":"1","state":"watched","results":0,"settle_after_ms":null,"watched_at":1795416784348,"polled_at":null,"grown_at":null,"refused":0,"failures":0,"error":null,"source":"command"}');
INSERT INTO jobtail.rows VALUES ('1', 'live_files', '["9001","stdout"]', '{"job_id":"1","task_id":"9001","file":"stdout","position":0,"generation":1,"fingerprint":null,"inexact":"[]","inode":null,"modified_ns":null,"rotation":null,"relative_path":null,"listed_name":null,"grown_at":null,"verified":null,"error":null,"boot_id":"elsewhere","copy_mark":null}');
INSERT INTO jobtail.rows VALUES ('1', 'live_files', '["9001","stderr"]', '{"job_id":"1","task_id":"9001","file":"stderr","position":0,"generation":1,"fingerprint":null,"inexact":"[]","inode":null,"modified_ns":null,"rotation":null,"relative_path":null,"listed_name":null,"grown_at":null,"verified":null,"error":null,"boot_id":"elsewhere","copy_mark":null}');
INSERT INTO jobtail.rows VALUES ('1', 'live_files', '["9001","log"]', '{"job_id":"1","task_id":"9001","file":"log","position":0,"generation":1,"fingerprint":null,"inexact":"[]","inode":null,"modified_ns":null,"rotation":null,"relative_path":null,"listed_name":null,"grown_at":null,"verified":null,"error":null,"boot_id":"elsewhere","copy_mark":null}');
INSERT INTO jobtail.rows VALUES ('1', 'live_files', '["9001","progress"]', '{"job_id":"1","task_id":"9001","file":"progress","position":0,"generation":1,"fingerprint":null,"inexact":"[]","inode":null,"modified_ns":null,"rotation":null,"relative_path":null,"listed_name":null,"grown_at":null,"verified":null,"error":null,"boot_id":"elsewhere","copy_mark":null}');
INSERT INTO jobtail.rows VALUES ('2', 'jobs', '[]', '{"job_id":"2","state":"watched","results":0,"settle_after_ms":null,"watched_at":1795416784349,"polled_at":null,"grown_at":null,"refused":0,"failures":0,"error":null,"source":"command"}');
INSERT INTO jobtail.rows VALUES ('2', 'live_files', '["9001","stdout"]', '{"job_id":"2","task_id":"9001","file":"stdout","position":0,"generation":1,"fingerprint":null,"inexact":"[]","inode":null,"modified_ns":null,"rotation":null,"relative_path":null,"listed_name":null,"grown_at":null,"verified":null,"error":null,"boot_id":"elsewhere","copy_mark":null}');
INSERT INTO jobtail.rows VALUES ('2', 'live_files', '["9001","stderr"]', '{"job_id":"2","task_id":"9001","file":"stderr","position":0,"generation":1,"fingerprint":null,"inexact":"[]","inode":null,"modified_ns":null,"rotation":null,"relative_path":null,"listed_name":null,"grown_at":null,"verified":null,"error":null,"boot_id":"elsewhere","copy_mark":null}');
INSERT INTO jobtail.rows VALUES ('2', 'live_files', '["9001","log"]', '{"job_id":"2","task_id":"9001","file":"log","position":0,"generation":1,"fingerprint":null,"inexact":"[]","inode":null,"modified_ns":null,"rotation":null,"relative_path":null,"listed_name":null,"grown_at":null,"verified":null,"error":null,"boot_id":"elsewhere","copy_mark":null}');
INSERT INTO jobtail.rows VALUES ('2', 'live_files', '["9001","progress"]', '{"job_id":"2","task_id":"9001","file":"progress","position":0,"generation":1,"fingerprint":null,"inexact":"[]","inode":null,"modified_ns":null,"rotation":null,"relative_path":null,"listed_name":null,"grown_at":null,"verified":null,"error":null,"boot_id":"elsewhere","copy_mark":null}');
INSERT INTO jobtail.rows VALUES ('3', 'jobs', '[]', '{"job_id":"3","state":"watched","results":0,"settle_after_ms":null,"watched_at":1795416784358,"polled_at":null,"grown_at":null,"refused":0,"failures":0,"error":null,"source":"command"}');
INSERT INTO jobtail.rows VALUES ('3', 'live_files', '["9001","stdout"]', '{"job_id":"3","task_id":"9001","file":"stdout","position":0,"generation":1,"fingerprint":null,"inexact":"[]","inode":null,"modified_ns":null,"rotation":null,"relative_path":null,"listed_name":null,"grown_at":null,"verified":null,"error":null,"boot_id":"elsewhere","copy_mark":null}');
INSERT INTO jobtail.rows VALUES ('3', 'live_files', '["9001","stderr"]', '{"job_id":"3","task_id":"9001","file":"stderr","position":0,"generation":1,"fingerprint":null,"inexact":"[]","inode":null,"modified_ns":null,"rotation":null,"relative_path":null,"listed_name":null,"grown_at":null,"verified":null,"error":null,"boot_id":"elsewhere","copy_mark":null}');
INSERT INTO jobtail.rows VALUES ('3', 'live_files', '["9001","log"]', '{"job_id":"3","task_id":"9001","file":"log","position":0,"generation":1,"fingerprint":null,"inexact":"[]","inode":null,"modified_ns":null,"rotation":null,"relative_path":null,"listed_name":null,"grown_at":null,"verified":null,"error":null,"boot_id":"elsewhere","copy_mark":null}');
INSERT INTO jobtail.rows VALUES ('3', 'live_files', '["9001","progress"]', '{"job_id":"3","task_id":"9001","file":"progress","position":0,"generation":1,"fingerprint":null,"inexact":"[]","inode":null,"modified_ns":null,"rotation":null,"relative_path":null,"listed_name":null,"grown_at":null,"verified":null,"error":null,"boot_id":"elsewhere","copy_mark":null}');
INSERT INTO jobtail.version VALUES (1, 1);
INSERT INTO jobtail_boss.job_common VALUES ('44d37d6e-fe5c-40b5-8dc2-d2e9f999cdc7', 'follow', 0, '{"jobId": "2"}', 'active', 2000000000, 0, 0, false, NULL, 86400, 604800, '2', NULL, NULL, NULL, '2026-11-23 06:53:03.73113+00', '2026-11-23 06:53:03.73113+00', '2026-11-23 06:53:04.259761+00', NULL, '2090-04-09 10:26:23.73113+00', NULL, NULL, 'exclusive', '2026-11-23 06:53:07.75535+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO jobtail_boss.job_common VALUES ('94ba0574-0a84-4099-9be7-6475fc8d0d04', 'follow', 0, '{"jobId": "1"}', 'active', 2000000000, 0, 0, false, NULL, 86400, 604800, '1', NULL, NULL, NULL, '2026-11-23 06:53:03.518347+00', '2026-11-23 06:53:03.518347+00', '2026-11-23 06:53:04.259761+00', NULL, '2090-04-09 10:26:23.518347+00', NULL, NULL, 'exclusive', '2026-11-23 06:53:07.75535+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO jobtail_boss.job_common VALUES ('da73cfc1-8796-4280-b070-2dd4d5bd890a', 'follow', 0, '{"jobId": "3"}', 'active', 2000000000, 0, 0, false, NULL, 86400, 604800, '3', NULL, NULL, NULL, '2026-11-23 06:53:03.762427+00', '2026-11-23 06:53:03.762427+00', '2026-11-23 06:53:04.259761+00', NULL, '2090-04-09 10:26:23.762427+00', NULL, NULL, 'exclusive', '2026-11-23 06:53:07.75535+00', 10, false, false, 0, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO jobtail_boss.queue VALUES ('follow', 'exclusive', 2000000000, 0, false, NULL, 86400, 2000000000, 604800, NULL, false, 'job_common', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, '{}', 10, false, NULL, NULL, NULL, NULL, '2026-11-23 06:53:03.504668+00', '2026-11-23 06:53:03.504668+00');
INSERT INTO jobtail_boss.version VALUES (43, NULL, '2026-11-23 06:53:03.597751+00', NULL, NULL, NULL);
SELECT pg_catalog.setval('jobtail.orders_order_id_seq', 3, true);
ALTER TABLE ONLY jobtail.agents
    ADD CONSTRAINT agents_pkey PRIMARY KEY (name);
ALTER TABLE ONLY jobtail.attempts
    ADD CONSTRAINT attempts_pkey PRIMARY KEY (job_id, attempt);
ALTER TABLE ONLY jobtail.budgets
    ADD CONSTRAINT budgets_pkey PRIMARY KEY (name);
ALTER TABLE ONLY jobtail.configured
    ADD CONSTRAINT configured_pkey PRIMARY KEY (agent, job_id);
ALTER TABLE ONLY jobtail.habits
    ADD CONSTRAINT habits_pkey PRIMARY KEY (service, name);
ALTER TABLE ONLY jobtail.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (job_id);
ALTER TABLE ONLY jobtail.orders
    ADD CONSTRAINT orders_pkey PRIMARY KEY (order_id);
ALTER TABLE ONLY jobtail.rows
    ADD CONSTRAINT rows_pkey PRIMARY KEY (job_id, kind, key);
ALTER TABLE ONLY jobtail.rules
    ADD CONSTRAINT rules_pkey PRIMARY KEY (one);
ALTER TABLE ONLY jobtail.version
    ADD CONSTRAINT version_pkey PRIMARY KEY (one);
ALTER TABLE ONLY jobtail_boss.bam
    ADD CONSTRAINT bam_pkey PRIMARY KEY (id);
ALTER TABLE ONLY jobtail_boss.job
    ADD CONSTRAINT job_pkey PRIMARY KEY (name, id);
ALTER TABLE ONLY jobtail_boss.job_common
    ADD CONSTRAINT job_common_pkey PRIMARY KEY (name, id);
ALTER TABLE ONLY jobtail_boss.job_dependency
    ADD CONSTRAINT job_dependency_pkey PRIMARY KEY (child_name, child_id, parent_name, parent_id);
ALTER TABLE ONLY jobtail_boss.queue
    ADD CONSTRAINT queue_pkey PRIMARY KEY (name);
ALTER TABLE ONLY jobtail_boss.queue_stats
    ADD CONSTRAINT queue_stats_pkey PRIMARY KEY (id, captured_on);
ALTER TABLE ONLY jobtail_boss.queue_stats_20261123
    ADD CONSTRAINT queue_stats_20261123_pkey PRIMARY KEY (id, captured_on);
ALTER TABLE ONLY jobtail_boss.queue_stats_20261124
    ADD CONSTRAINT queue_stats_20261124_pkey PRIMARY KEY (id, captured_on);
ALTER TABLE ONLY jobtail_boss.schedule
    ADD CONSTRAINT schedule_pkey PRIMARY KEY (name, key);
ALTER TABLE ONLY jobtail_boss.subscription
    ADD CONSTRAINT subscription_pkey PRIMARY KEY (event, name);
ALTER TABLE ONLY jobtail_boss.version
    ADD CONSTRAINT version_pkey PRIMARY KEY (version);
ALTER TABLE ONLY jobtail_boss.warning
    ADD CONSTRAINT warning_pkey PRIMARY KEY (id);
CREATE INDEX attempts_open ON jobtail.attempts USING btree (job_id) WHERE (ended_at IS NULL);
CREATE INDEX jobs_by_owner ON jobtail.jobs USING btree (owner) WHERE (owner IS NOT NULL);
CREATE INDEX orders_open ON jobtail.orders USING btree (job_id, order_id) WHERE (answer IS NULL);
CREATE UNIQUE INDEX job_common_i1 ON jobtail_boss.job_common USING btree (name, COALESCE(singleton_key, ''::text)) WHERE ((state = 'created'::jobtail_boss.job_state) AND (policy = 'short'::text));
CREATE INDEX job_common_i10 ON jobtail_boss.job_common USING btree (name, singleton_key, state DESC, created_on, id) INCLUDE (start_after) WHERE ((state < 'active'::jobtail_boss.job_state) AND (NOT blocked) AND (policy = 'key_strict_fifo'::text));
CREATE INDEX job_common_i11 ON jobtail_boss.job_common USING btree (name, priority DESC, created_on, start_after) WHERE ((state < 'active'::jobtail_boss.job_state) AND (NOT blocked));
CREATE INDEX job_common_i12 ON jobtail_boss.job_common USING btree (source_root_id) WHERE (source_root_id IS NOT NULL);
CREATE UNIQUE INDEX job_common_i2 ON jobtail_boss.job_common USING btree (name, COALESCE(singleton_key, ''::text)) WHERE ((state = 'active'::jobtail_boss.job_state) AND (policy = 'singleton'::text));
CREATE UNIQUE INDEX job_common_i3 ON jobtail_boss.job_common USING btree (name, state, COALESCE(singleton_key, ''::text)) WHERE ((state <= 'active'::jobtail_boss.job_state) AND (policy = 'stately'::text));
CREATE UNIQUE INDEX job_common_i4 ON jobtail_boss.job_common USING btree (name, singleton_on, COALESCE(singleton_key, ''::text)) WHERE ((state <> 'cancelled'::jobtail_boss.job_state) AND (singleton_on IS NOT NULL));
CREATE UNIQUE INDEX job_common_i6 ON jobtail_boss.job_common USING btree (name, COALESCE(singleton_key, ''::text)) WHERE ((state <= 'active'::jobtail_boss.job_state) AND (policy = 'exclusive'::text));
CREATE INDEX job_common_i7 ON jobtail_boss.job_common USING btree (name, group_id) WHERE ((state = 'active'::jobtail_boss.job_state) AND (group_id IS NOT NULL));
CREATE UNIQUE INDEX job_common_i8 ON jobtail_boss.job_common USING btree (name, singleton_key) WHERE ((state = ANY (ARRAY['active'::jobtail_boss.job_state, 'retry'::jobtail_boss.job_state, 'failed'::jobtail_boss.job_state])) AND (policy = 'key_strict_fifo'::text));
CREATE INDEX job_common_i9 ON jobtail_boss.job_common USING btree (name, id) WHERE (blocking AND (state = 'completed'::jobtail_boss.job_state));
CREATE INDEX job_dep_parent_idx ON jobtail_boss.job_dependency USING btree (parent_name, parent_id);
CREATE INDEX queue_stats_i1 ON ONLY jobtail_boss.queue_stats USING btree (name, captured_on DESC) INCLUDE (deferred_count, queued_count, ready_count, active_count, failed_count, total_count);
CREATE INDEX queue_stats_20261123_name_captured_on_deferred_count_queued_idx ON jobtail_boss.queue_stats_20261123 USING btree (name, captured_on DESC) INCLUDE (deferred_count, queued_count, ready_count, active_count, failed_count, total_count);
CREATE INDEX queue_stats_20261124_name_captured_on_deferred_count_queued_idx ON jobtail_boss.queue_stats_20261124 USING btree (name, captured_on DESC) INCLUDE (deferred_count, queued_count, ready_count, active_count, failed_count, total_count);
CREATE INDEX warning_i1 ON jobtail_boss.warning USING btree (created_on DESC);
ALTER INDEX jobtail_boss.job_pkey ATTACH PARTITION jobtail_boss.job_common_pkey;
ALTER INDEX jobtail_boss.queue_stats_i1 ATTACH PARTITION jobtail_boss.queue_stats_20261123_name_captured_on_deferred_count_queued_idx;
ALTER INDEX jobtail_boss.queue_stats_pkey ATTACH PARTITION jobtail_boss.queue_stats_20261123_pkey;
ALTER INDEX jobtail_boss.queue_stats_i1 ATTACH PARTITION jobtail_boss.queue_stats_20261124_name_captured_on_deferred_count_queued_idx;
ALTER INDEX jobtail_boss.queue_stats_pkey ATTACH PARTITION jobtail_boss.queue_stats_20261124_pkey;
ALTER TABLE ONLY jobtail.orders
    ADD CONSTRAINT orders_job_id_fkey FOREIGN KEY (job_id) REFERENCES jobtail.jobs(job_id) ON DELETE CASCADE;
ALTER TABLE ONLY jobtail.rows
    ADD CONSTRAINT rows_job_id_fkey FOREIGN KEY (job_id) REFERENCES jobtail.jobs(job_id) ON DELETE CASCADE;
ALTER TABLE ONLY jobtail_boss.job_common
    ADD CONSTRAINT dlq_fkey FOREIGN KEY (dead_letter) REFERENCES jobtail_boss.queue(name) ON DELETE RESTRICT DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY jobtail_boss.job_common
    ADD CONSTRAINT q_fkey FOREIGN KEY (name) REFERENCES jobtail_boss.queue(name) ON DELETE RESTRICT DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ONLY jobtail_boss.queue
    ADD CONSTRAINT queue_dead_letter_fkey FOREIGN KEY (dead_letter) REFERENCES jobtail_boss.queue(name);
ALTER TABLE ONLY jobtail_boss.schedule
    ADD CONSTRAINT schedule_name_fkey FOREIGN KEY (name) REFERENCES jobtail_boss.queue(name) ON DELETE CASCADE;
ALTER TABLE ONLY jobtail_boss.subscription
    ADD CONSTRAINT subscription_name_fkey FOREIGN KEY (name) REFERENCES jobtail_boss.queue(name) ON DELETE CASCADE;
