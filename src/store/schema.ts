/**
 * The tables. A new state is created by `SCHEMA`; `UPGRADES` bring the state of an older version to the same schema
 * (test/store/schema.test.ts compares both). The oldest state that is upgraded is that of the release 0.2.0.
 *
 * A change of a table goes into `SCHEMA` and into a new entry of `UPGRADES`; a released entry is never changed.
 *
 * Ids are decimal text (64 bits), times are milliseconds since 1970, lengths and positions are bytes;
 * `mismatches`, `error` and `information` are JSON, and so are lists.
 */
/** The formats of releases, the oldest first, and that of this version. */
export const VERSIONS: readonly [number, number] = [12, 26];
export const [OLDEST_VERSION] = VERSIONS;
export const NEWEST_VERSION = VERSIONS[1];

/** Read by the notifications (outbox.ts). */
const NOTIFICATIONS = `
  CREATE TABLE notified_jobs (
    job_id      TEXT PRIMARY KEY REFERENCES jobs (job_id) ON DELETE CASCADE,
    job_state   TEXT,
    started_at  TEXT,
    watch_state TEXT NOT NULL,
    stalled_at  INTEGER,
    has_files   INTEGER NOT NULL CHECK (has_files IN (0, 1))
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE read_positions (
    job_id     TEXT NOT NULL REFERENCES jobs (job_id) ON DELETE CASCADE,
    task_id    TEXT NOT NULL,
    file       TEXT NOT NULL,
    generation INTEGER NOT NULL,
    position   INTEGER NOT NULL,
    lines      INTEGER,
    PRIMARY KEY (job_id, task_id, file)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE outbox (
    delivery_id TEXT PRIMARY KEY,
    job_id      TEXT REFERENCES jobs (job_id) ON DELETE CASCADE,
    rule        TEXT NOT NULL,
    event       TEXT NOT NULL,
    made_at     INTEGER NOT NULL,
    due_at      INTEGER,
    attempts    INTEGER NOT NULL,
    last_error  TEXT
  ) STRICT;
  CREATE INDEX outbox_by_rule ON outbox (rule, due_at);
  CREATE INDEX outbox_by_job ON outbox (job_id);
`;

/** The highest revision of all jobs that were forgotten, so that `jobs.revision` never goes back. */
const FORGOTTEN = `
  CREATE TABLE forgotten_jobs (
    one      INTEGER PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    revision INTEGER NOT NULL
  ) STRICT;
  INSERT INTO forgotten_jobs (revision) VALUES (0);
  CREATE TRIGGER job_forgotten AFTER DELETE ON jobs BEGIN
    UPDATE forgotten_jobs SET revision = max(revision, old.revision);
  END;
`;

/** Requests of commands to the running agent; `job_id` is null for the list of jobs. */
const REQUESTS = `
  CREATE TABLE requests (
    request_id INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id     TEXT,
    kind       TEXT NOT NULL,
    made_at    INTEGER NOT NULL,
    answer     TEXT
  ) STRICT;
  CREATE INDEX requests_open ON requests (request_id) WHERE answer IS NULL;
`;

/** The ids of removed jobs: no rule and no configuration follows them again. */
const FORMER = `
  CREATE TABLE former_jobs (
    job_id       TEXT PRIMARY KEY,
    forgotten_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
`;

/**
 * Older versions wrote `?` in place of bytes that they could not get. The mirror is committed up to the first of them only,
 * and counts as modified: the next poll compares it, cuts it there, and requests the rest. Until then, an error reports it.
 */
const WITHOUT_SUBSTITUTES = `
  UPDATE live_files SET position = min(position, inexact ->> '$[0].start'), checksum = NULL, modified_ns = NULL,
    verified = NULL, error = json_object('code', 'stuck', 'message', 'the mirror ends at byte '
      || (inexact ->> '$[0].start') || ': an older version wrote ? in place of what follows', 'hint',
      'run agent sync with this job', 'since', unixepoch() * 1000)
    WHERE inexact <> '[]';
  ALTER TABLE live_files DROP COLUMN inexact;
  UPDATE live_files SET mismatches = (SELECT json_group_array(json(value)) FROM json_each(mismatches)
    WHERE value ->> 'kind' <> 'decoder-changed');
`;

/** Older versions recorded as a source of an empty mirror any file that was empty. The next comparison finds sources again. */
const WITHOUT_SOURCES = 'UPDATE live_files SET listed_name = NULL;';

/** Entry n brings the database from `VERSIONS[n]` to `VERSIONS[n + 1]` (`PRAGMA user_version`). */
export const UPGRADES: readonly string[] = [
  `ALTER TABLE jobs ADD COLUMN stall_after_ms INTEGER; ALTER TABLE jobs ADD COLUMN stalled_at INTEGER;
   ALTER TABLE jobs ADD COLUMN seen_state TEXT;
   ALTER TABLE result_passes ADD COLUMN arriving TEXT NOT NULL DEFAULT '[]';
   ${NOTIFICATIONS}${FORGOTTEN}${FORMER}
   DROP INDEX requests_open; ALTER TABLE requests RENAME TO old_requests; ${REQUESTS}
   INSERT INTO requests SELECT * FROM old_requests; DROP TABLE old_requests;
   ALTER TABLE job_information RENAME COLUMN told_at TO reported_at;
   ALTER TABLE job_information ADD COLUMN is_former INTEGER NOT NULL DEFAULT 0 CHECK (is_former IN (0, 1));
   ALTER TABLE task_searches RENAME COLUMN looked_at TO searched_at;
   ALTER TABLE task_searches RENAME COLUMN next_look_at TO next_search_at;
   ALTER TABLE job_looks RENAME COLUMN looked_at TO requested_at;
   ALTER TABLE job_looks RENAME COLUMN next_look_at TO next_request_at;
   ALTER TABLE job_looks RENAME TO job_service_requests;
   ALTER TABLE watch_mine RENAME COLUMN most_jobs TO max_jobs;
   ALTER TABLE result_counts RENAME COLUMN unkept TO without_row;
   ALTER TABLE habits RENAME TO capabilities;
   ALTER TABLE live_files DROP COLUMN fingerprint; ALTER TABLE live_files DROP COLUMN boot_id;
   ALTER TABLE live_files ADD COLUMN unverified TEXT;
   ALTER TABLE live_files ADD COLUMN early INTEGER NOT NULL DEFAULT 0 CHECK (early IN (0, 1));
   ${WITHOUT_SOURCES}
   ${WITHOUT_SUBSTITUTES}`,
];

export const SCHEMA = `
  CREATE TABLE jobs (
    job_id          TEXT PRIMARY KEY,
    source          TEXT NOT NULL DEFAULT 'command' CHECK (source IN ('config', 'command', 'mine')),
    state           TEXT NOT NULL CHECK (state IN ('watched', 'ending', 'ended', 'settled')),
    results         INTEGER NOT NULL CHECK (results IN (0, 1)),
    settle_after_ms INTEGER,
    stall_after_ms  INTEGER,
    watched_at      INTEGER NOT NULL,
    polled_at       INTEGER,
    grown_at        INTEGER,
    stalled_at      INTEGER,
    seen_state      TEXT,
    refused         INTEGER NOT NULL DEFAULT 0,
    failures        INTEGER NOT NULL DEFAULT 0,
    error           TEXT,
    revision        INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE INDEX jobs_by_revision ON jobs (revision);

  CREATE TABLE live_files (
    job_id        TEXT NOT NULL REFERENCES jobs (job_id) ON DELETE CASCADE,
    task_id       TEXT NOT NULL,
    file          TEXT NOT NULL CHECK (file IN ('stdout', 'stderr', 'log', 'progress')),
    position      INTEGER NOT NULL DEFAULT 0,
    generation    INTEGER NOT NULL DEFAULT 1,
    checksum      INTEGER,
    inode         TEXT,
    modified_ns   TEXT,
    rotation      TEXT CHECK (rotation IN ('copying', 'copied')),
    copy_mark     TEXT,
    relative_path TEXT,
    listed_name   TEXT,
    grown_at      INTEGER,
    verified      INTEGER,
    unverified    TEXT,
    early         INTEGER NOT NULL DEFAULT 0 CHECK (early IN (0, 1)),
    mismatches    TEXT NOT NULL DEFAULT '[]',
    error         TEXT,
    PRIMARY KEY (job_id, task_id, file)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE task_searches (
    job_id       TEXT PRIMARY KEY REFERENCES jobs (job_id) ON DELETE CASCADE,
    files        TEXT NOT NULL,
    found_by     TEXT CHECK (found_by IN ('job-service', 'probes')),
    fruitless    INTEGER NOT NULL DEFAULT 0,
    searched_at  INTEGER,
    next_search_at INTEGER,
    hint         TEXT
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE job_information (
    job_id      TEXT PRIMARY KEY REFERENCES jobs (job_id) ON DELETE CASCADE,
    information TEXT NOT NULL,
    since       INTEGER NOT NULL,
    reported_at     INTEGER NOT NULL,
    is_former   INTEGER NOT NULL DEFAULT 0 CHECK (is_former IN (0, 1))
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE job_service_requests (
    one          INTEGER PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    requested_at    INTEGER NOT NULL,
    next_request_at INTEGER NOT NULL,
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
    max_jobs   INTEGER NOT NULL,
    since      INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE result_files (
    job_id       TEXT NOT NULL REFERENCES jobs (job_id) ON DELETE CASCADE,
    name         TEXT NOT NULL,
    state        TEXT NOT NULL
      CHECK (state IN ('listed', 'synced', 'in-flux', 'linked', 'failed', 'refused', 'left-out')),
    reason       TEXT,
    bytes        INTEGER,
    sha256       TEXT,
    live         TEXT,
    listed_at    INTEGER NOT NULL,
    fetched_at   INTEGER,
    stamp        TEXT,
    stamp_proven INTEGER NOT NULL DEFAULT 0 CHECK (stamp_proven IN (0, 1)),
    hangs        INTEGER NOT NULL DEFAULT 0,
    due_at       INTEGER NOT NULL,
    interval_ms  INTEGER NOT NULL,
    PRIMARY KEY (job_id, name)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX result_files_linked ON result_files (job_id) WHERE live IS NOT NULL;
  CREATE INDEX result_files_not_synced ON result_files (job_id) WHERE reason IS NOT NULL;

  -- Triggers count the results as they change: the service decides how many there are. without_row: names without a row.
  CREATE TABLE result_counts (
    job_id TEXT NOT NULL REFERENCES jobs (job_id) ON DELETE CASCADE,
    state  TEXT NOT NULL,
    kept   INTEGER NOT NULL,
    without_row INTEGER NOT NULL DEFAULT 0,
    bytes  INTEGER NOT NULL,
    PRIMARY KEY (job_id, state)
  ) STRICT, WITHOUT ROWID;
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

  CREATE TABLE result_passes (
    job_id       TEXT PRIMARY KEY REFERENCES jobs (job_id) ON DELETE CASCADE,
    started_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    ended_at     INTEGER,
    wanted       INTEGER NOT NULL,
    done         INTEGER NOT NULL,
    wanted_bytes INTEGER,
    bytes        INTEGER NOT NULL,
    way          TEXT,
    fallback     TEXT,
    arriving     TEXT NOT NULL DEFAULT '[]'
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

  CREATE TABLE capabilities (
    service TEXT NOT NULL,
    name    TEXT NOT NULL,
    value   TEXT NOT NULL,
    PRIMARY KEY (service, name)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE fleet_leases (
    job_id  TEXT PRIMARY KEY REFERENCES jobs (job_id) ON DELETE CASCADE,
    attempt INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE fleet_member (
    one      INTEGER PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    state_id TEXT NOT NULL
  ) STRICT;
${NOTIFICATIONS}${FORGOTTEN}${REQUESTS}${FORMER}`;
