/**
 * The tables, as a list of numbered migrations: entry n brings the database from version n to n + 1
 * (`PRAGMA user_version`). An entry that was released is never changed; a new one is added.
 *
 * Ids are decimal text (64 bits), times are milliseconds since 1970, lengths and positions are bytes.
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

  CREATE TABLE inexact_regions (
    job_id  TEXT NOT NULL,
    task_id TEXT NOT NULL,
    file    TEXT NOT NULL,
    start   INTEGER NOT NULL,
    length  INTEGER NOT NULL,
    PRIMARY KEY (job_id, task_id, file, start),
    FOREIGN KEY (job_id, task_id, file) REFERENCES live_files (job_id, task_id, file) ON DELETE CASCADE
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
];
