/**
 * The tables, as a list of numbered migrations: entry n brings the database from version n to n + 1
 * (`PRAGMA user_version`). An entry that was released is never changed; a new one is added.
 *
 * Ids are decimal text (64 bits), times are milliseconds since 1970, lengths and positions are bytes;
 * `inexact`, `mismatches`, `error` and `information` are JSON, and so are lists.
 */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE jobs (
    job_id          TEXT PRIMARY KEY,
    source          TEXT NOT NULL CHECK (source IN ('config', 'command')),
    state           TEXT NOT NULL CHECK (state IN ('watched', 'ending', 'ended', 'settled')),
    results         INTEGER NOT NULL CHECK (results IN (0, 1)),
    settle_after_ms INTEGER,
    watched_at      INTEGER NOT NULL,
    polled_at       INTEGER,
    grown_at        INTEGER,
    refused         INTEGER NOT NULL DEFAULT 0,
    failures        INTEGER NOT NULL DEFAULT 0,
    error           TEXT
  ) STRICT;

  CREATE TABLE live_files (
    job_id        TEXT NOT NULL REFERENCES jobs (job_id) ON DELETE CASCADE,
    task_id       TEXT NOT NULL,
    file          TEXT NOT NULL CHECK (file IN ('stdout', 'stderr', 'log', 'progress')),
    position      INTEGER NOT NULL DEFAULT 0,
    generation    INTEGER NOT NULL DEFAULT 1,
    fingerprint   TEXT,
    inexact       TEXT NOT NULL DEFAULT '[]',
    inode         TEXT,
    modified_ns   TEXT,
    rotation      TEXT CHECK (rotation IN ('copying', 'copied')),
    relative_path TEXT,
    listed_name   TEXT,
    grown_at      INTEGER,
    verified      INTEGER,
    error         TEXT,
    PRIMARY KEY (job_id, task_id, file)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE result_files (
    job_id      TEXT NOT NULL REFERENCES jobs (job_id) ON DELETE CASCADE,
    name        TEXT NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('listed', 'synced', 'in-flux', 'failed', 'refused', 'left-out')),
    reason      TEXT,
    bytes       INTEGER,
    sha256      TEXT,
    listed_at   INTEGER NOT NULL,
    fetched_at  INTEGER,
    due_at      INTEGER NOT NULL,
    interval_ms INTEGER NOT NULL,
    PRIMARY KEY (job_id, name)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE requests (
    request_id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id     TEXT NOT NULL,
    kind       TEXT NOT NULL CHECK (kind IN ('sync', 'unwatch')),
    made_at    INTEGER NOT NULL,
    answer     TEXT
  ) STRICT;

  CREATE TABLE habits (
    service TEXT NOT NULL,
    name    TEXT NOT NULL,
    value   TEXT NOT NULL,
    PRIMARY KEY (service, name)
  ) STRICT, WITHOUT ROWID;
  `,
  // Results that are links to live mirrors, how the last look at a job's results went, and transfer methods in use.
  `
  CREATE TABLE result_files_2 (
    job_id      TEXT NOT NULL REFERENCES jobs (job_id) ON DELETE CASCADE,
    name        TEXT NOT NULL,
    state       TEXT NOT NULL
      CHECK (state IN ('listed', 'synced', 'in-flux', 'linked', 'failed', 'refused', 'left-out')),
    reason      TEXT,
    bytes       INTEGER,
    sha256      TEXT,
    live        TEXT,
    listed_at   INTEGER NOT NULL,
    fetched_at  INTEGER,
    due_at      INTEGER NOT NULL,
    interval_ms INTEGER NOT NULL,
    PRIMARY KEY (job_id, name)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO result_files_2
    SELECT job_id, name, state, reason, bytes, sha256, NULL, listed_at, fetched_at, due_at, interval_ms
    FROM result_files;
  DROP TABLE result_files;
  ALTER TABLE result_files_2 RENAME TO result_files;

  CREATE TABLE result_passes (
    job_id     TEXT PRIMARY KEY REFERENCES jobs (job_id) ON DELETE CASCADE,
    started_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    ended_at   INTEGER,
    wanted     INTEGER NOT NULL,
    done       INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    way        TEXT,
    fallback   TEXT
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE transfer_leases (
    lease_id   INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id     TEXT NOT NULL REFERENCES jobs (job_id) ON DELETE CASCADE,
    state      TEXT NOT NULL CHECK (state IN ('asked', 'open', 'ended', 'unknown')),
    protocol   TEXT,
    host       TEXT,
    base_path  TEXT,
    username   TEXT,
    public_key TEXT,
    way        TEXT,
    asked_at   INTEGER NOT NULL,
    opened_at  INTEGER,
    ended_at   INTEGER,
    reason     TEXT
  ) STRICT;
  CREATE INDEX transfer_leases_by_state ON transfer_leases (state, job_id);
  `,
  // What changed since the agent last looked, without looking at all of it.
  `
  ALTER TABLE jobs ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
  CREATE INDEX jobs_by_revision ON jobs (revision);
  CREATE INDEX requests_open ON requests (request_id) WHERE answer IS NULL;
  `,
  // The boot of the machine on which bytes are being appended that are not committed yet.
  'ALTER TABLE live_files ADD COLUMN boot_id TEXT;',
  // The results of a job are counted as they change: how many there are, the cluster decides. Of `unkept`
  // ones there is nothing else.
  `
  CREATE TABLE result_counts (
    job_id TEXT NOT NULL REFERENCES jobs (job_id) ON DELETE CASCADE,
    state  TEXT NOT NULL,
    kept   INTEGER NOT NULL,
    unkept INTEGER NOT NULL DEFAULT 0,
    bytes  INTEGER NOT NULL,
    PRIMARY KEY (job_id, state)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO result_counts (job_id, state, kept, bytes)
    SELECT job_id, state, count(*), coalesce(sum(bytes), 0) FROM result_files GROUP BY job_id, state;
  CREATE TRIGGER result_added AFTER INSERT ON result_files BEGIN
    INSERT INTO result_counts (job_id, state, kept, bytes) VALUES (new.job_id, new.state, 1, coalesce(new.bytes, 0))
      ON CONFLICT DO UPDATE SET kept = kept + 1, bytes = bytes + excluded.bytes;
  END;
  CREATE TRIGGER result_removed AFTER DELETE ON result_files BEGIN
    UPDATE result_counts SET kept = kept - 1, bytes = bytes - coalesce(old.bytes, 0)
      WHERE job_id = old.job_id AND state = old.state;
  END;
  CREATE TRIGGER result_changed AFTER UPDATE OF state, bytes ON result_files BEGIN
    UPDATE result_counts SET kept = kept - 1, bytes = bytes - coalesce(old.bytes, 0)
      WHERE job_id = old.job_id AND state = old.state;
    INSERT INTO result_counts (job_id, state, kept, bytes) VALUES (new.job_id, new.state, 1, coalesce(new.bytes, 0))
      ON CONFLICT DO UPDATE SET kept = kept + 1, bytes = bytes + excluded.bytes;
  END;
  CREATE INDEX result_files_linked ON result_files (job_id) WHERE live IS NOT NULL;
  CREATE INDEX result_files_not_synced ON result_files (job_id) WHERE reason IS NOT NULL;
  `,
  // Tasks that are to be found, what the middleware tells of jobs, and jobs that are followed because they are the user's.
  `
  ALTER TABLE jobs RENAME COLUMN source TO source_before;
  ALTER TABLE jobs ADD COLUMN source TEXT NOT NULL DEFAULT 'command' CHECK (source IN ('config', 'command', 'mine'));
  UPDATE jobs SET source = source_before;
  ALTER TABLE jobs DROP COLUMN source_before;

  CREATE TABLE task_searches (
    job_id       TEXT PRIMARY KEY REFERENCES jobs (job_id) ON DELETE CASCADE,
    files        TEXT NOT NULL,
    found_by     TEXT CHECK (found_by IN ('job-service', 'probes')),
    fruitless    INTEGER NOT NULL DEFAULT 0,
    looked_at    INTEGER,
    next_look_at INTEGER,
    hint         TEXT
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE job_information (
    job_id      TEXT PRIMARY KEY REFERENCES jobs (job_id) ON DELETE CASCADE,
    information TEXT NOT NULL,
    since       INTEGER NOT NULL,
    told_at     INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE job_looks (
    one          INTEGER PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    looked_at    INTEGER NOT NULL,
    next_look_at INTEGER NOT NULL,
    failures     INTEGER NOT NULL,
    error        TEXT,
    listed       INTEGER NOT NULL,
    waiting      INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE watch_mine (
    source     TEXT PRIMARY KEY CHECK (source IN ('config', 'command')),
    include    TEXT NOT NULL,
    exclude    TEXT NOT NULL,
    max_age_ms INTEGER NOT NULL,
    most_jobs  INTEGER NOT NULL,
    since      INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  `,
  // What the listing said of the time of a result when it was fetched, and whether that spares its next fetch.
  `
  ALTER TABLE result_files ADD COLUMN stamp TEXT;
  ALTER TABLE result_files ADD COLUMN stamp_proven INTEGER NOT NULL DEFAULT 0 CHECK (stamp_proven IN (0, 1));
  `,
  // In a fleet: under which lease the rows of a job were taken over, and whose state this is.
  `
  ALTER TABLE live_files ADD COLUMN copy_mark TEXT;
  CREATE TABLE fleet_leases (
    job_id  TEXT PRIMARY KEY REFERENCES jobs (job_id) ON DELETE CASCADE,
    attempt INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE fleet_member (
    one      INTEGER PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    state_id TEXT NOT NULL
  ) STRICT;
  `,
  // A checksum of the committed bytes, by which a mirror that was written to is known to have them still.
  'ALTER TABLE live_files ADD COLUMN checksum INTEGER;',
  // Why generations began, and what was repaired: a JSON list.
  "ALTER TABLE live_files ADD COLUMN mismatches TEXT NOT NULL DEFAULT '[]';",
  // How often in a row the service hung on a result.
  'ALTER TABLE result_files ADD COLUMN hangs INTEGER NOT NULL DEFAULT 0;',
  // The size of the results of a sync, where it is known: the time left goes by bytes then.
  'ALTER TABLE result_passes ADD COLUMN wanted_bytes INTEGER;',
];
