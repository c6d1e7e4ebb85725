-- The database of a fleet of version 0.2.0: what its four migrations made, of pg-boss the columns that matter, and what an
-- agent, anna, left in them. Jobs 1 and 2 are its own, 3 waits in the queue, 4 is over, 5 fell out of the queue.
CREATE SCHEMA jobtail;
CREATE SCHEMA jobtail_boss;
CREATE TABLE jobtail_boss.job (name text, singleton_key text, start_after timestamptz);
CREATE TABLE jobtail.version (one integer PRIMARY KEY CHECK (one = 1), version integer NOT NULL);
INSERT INTO jobtail.version VALUES (1, 4);
CREATE TABLE jobtail.agents (
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
CREATE TABLE jobtail.jobs (
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
CREATE INDEX jobs_by_owner ON jobtail.jobs (owner) WHERE owner IS NOT NULL;
CREATE TABLE jobtail.rows (
  job_id text NOT NULL REFERENCES jobtail.jobs ON DELETE CASCADE,
  kind   text NOT NULL,
  key    text NOT NULL,
  row    json NOT NULL,
  PRIMARY KEY (job_id, kind, key)
);
CREATE TABLE jobtail.orders (
  order_id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  job_id     text NOT NULL REFERENCES jobtail.jobs ON DELETE CASCADE,
  kind       text NOT NULL,
  body       json,
  made_at    timestamptz NOT NULL DEFAULT now(),
  is_applied boolean NOT NULL DEFAULT false,
  answer     json
);
CREATE INDEX orders_open ON jobtail.orders (job_id, order_id) WHERE answer IS NULL;
CREATE TABLE jobtail.attempts (
  job_id   text NOT NULL,
  attempt  integer NOT NULL,
  agent    text NOT NULL,
  boss_id  uuid NOT NULL,
  taken_at timestamptz NOT NULL,
  ended_at timestamptz,
  how      text,
  PRIMARY KEY (job_id, attempt)
);
CREATE INDEX attempts_open ON jobtail.attempts (job_id) WHERE ended_at IS NULL;
CREATE TABLE jobtail.habits (
  service text NOT NULL,
  name    text NOT NULL,
  value   text NOT NULL,
  PRIMARY KEY (service, name)
);
CREATE TABLE jobtail.rules (
  one  integer PRIMARY KEY DEFAULT 1 CHECK (one = 1),
  rule json NOT NULL
);
CREATE TABLE jobtail.configured (
  agent  text NOT NULL,
  job_id text NOT NULL,
  job_order json NOT NULL,
  PRIMARY KEY (agent, job_id)
);
CREATE TABLE jobtail.budgets (
  name      text PRIMARY KEY,
  next_slot timestamptz NOT NULL
);
ALTER TABLE jobtail.jobs DROP COLUMN boss_id, DROP COLUMN retry_count;
ALTER TABLE jobtail.attempts DROP COLUMN boss_id;
ALTER TABLE jobtail.agents
  ADD COLUMN capacity     integer,
  ADD COLUMN lacks        text,
  ADD COLUMN not_followed integer NOT NULL DEFAULT 0,
  ADD COLUMN took_at      timestamptz NOT NULL DEFAULT now(),
  ADD COLUMN passed_over  integer NOT NULL DEFAULT 0,
  ADD COLUMN rests_until  timestamptz;
-- Room for the next version of a row in its page: no index changes with it.
ALTER TABLE jobtail.agents SET (fillfactor = 50);
ALTER TABLE jobtail.budgets SET (fillfactor = 50);
ALTER TABLE jobtail.rows SET (fillfactor = 80);
ALTER TABLE jobtail.agents ADD COLUMN mirror text;
DO $$ BEGIN
  IF to_regclass('jobtail_boss.job') IS NOT NULL THEN DELETE FROM jobtail_boss.job WHERE name = 'follow'; END IF;
END $$;
UPDATE jobtail.agents SET seen_at = clock_timestamp();
ALTER TABLE jobtail.agents ADD COLUMN format integer;
ALTER TABLE jobtail.agents ADD CONSTRAINT "this agent is too old: install the newer version of jobtail"
  CHECK (format IS NOT NULL) NOT VALID;
INSERT INTO jobtail.agents (name, state_id, instance, lease_ms, most_jobs, about, mirror, format)
  VALUES ('anna', 'state of anna', 'first', 6000, 2000, '{"host":"here","pid":1,"version":"0.2.0"}', 'shared', 4);
INSERT INTO jobtail.jobs (job_id, state, owner, attempt, taken_at, mirror) VALUES
  ('1', 'watched', 'anna', 1, now(), 'shared'), ('2', 'watched', 'anna', 1, now(), 'shared'),
  ('3', 'watched', NULL, 1, now(), 'shared'), ('4', 'settled', NULL, 1, now(), 'shared'), ('5', 'ordered', NULL, 0, NULL, NULL);
INSERT INTO jobtail.attempts (job_id, attempt, agent, taken_at) VALUES ('1', 1, 'anna', now()), ('2', 1, 'anna', now());
INSERT INTO jobtail.rows (job_id, kind, key, row)
  SELECT job_id, 'jobs', '[]', json_build_object('job_id', job_id, 'source', source, 'state', state, 'results', 0, 'watched_at', 1)
  FROM jobtail.jobs WHERE state <> 'ordered';
INSERT INTO jobtail.rows (job_id, kind, key, row) VALUES
  ('3', 'task_searches', '[]', '{"job_id":"3","files":"[\"stdout\"]","looked_at":7,"next_look_at":null}'),
  ('3', 'job_information', '[]', '{"job_id":"3","information":"{\"told_at\":1}","since":1,"told_at":8}'),
  ('4', 'result_counts', '["left-out"]', '{"job_id":"4","state":"left-out","kept":0,"unkept":9,"bytes":0}'),
  ('4', 'result_files', json_build_array(repeat('"ü', 700)), json_build_object('job_id', '4', 'name', repeat('"ü', 700)));
INSERT INTO jobtail.rules (rule) VALUES
  ('{"source":"command","since":1,"include":["**"],"exclude":[],"maxAgeMs":1,"mostJobs":6}');
INSERT INTO jobtail.orders (job_id, kind, body) VALUES ('5', 'watch',
  '{"jobId":"5","tasks":["9001"],"files":["stdout"],"results":false,"settleAfterMs":null,"source":"command"}');
INSERT INTO jobtail_boss.job VALUES ('waiting', '3', now());
