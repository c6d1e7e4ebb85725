/** Opens the database of the state directory: checks it, upgrades it, and sets how it is written. */
import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { asJobtailError, JobtailError } from '../errors.ts';
import { withOwner } from '../system/storage.ts';
import { isServed } from './lock.ts';
import { NEWEST_VERSION, OLDEST_VERSION, SCHEMA, UPGRADES, VERSIONS } from './schema.ts';
import { asStoreError, isOfWriting, keepAlive, openNative, pragma } from './sql.ts';
import { makePrivateDatabase, requireRegularDatabase } from './state-files.ts';

/** Part of the name of a copy made before an upgrade: `agent.db.before-v<format>.<time>`. */
const BACKUP = '.before-v';
export const BUSY_TIMEOUT_MS = 5_000;
export const IN_MEMORY = ':memory:';

/** statfs types where SQLite's write-ahead log cannot be shared (docs/dev/servers.md 7): NFS, SMB, AFS, 9p, ... */
const NETWORK_FILE_SYSTEMS = new Set([
  0x6969, 0xff534d42, 0xfe534d42, 0x517b, 0x5346414f, 0x01021997, 0x65735546, 0x0bd00bd0, 0x47504653, 0x19830326,
  0x00c36400, 0xaad7aaea,
]);

export type Statfs = (directory: string) => Pick<fs.StatsFs, 'type' | 'bavail' | 'bsize'>;

/** Whether a directory is on a network file system, where SQLite's shared memory and inotify do not work across hosts. */
export function isOnNetworkFileSystem(directory: string, statfs: Statfs = fs.statfsSync): boolean {
  return NETWORK_FILE_SYSTEMS.has(statfs(directory).type >>> 0);
}

interface OpenDatabaseOptions {
  readonly file: string;
  /** Whether to upgrade the database and rename a broken one: only with the lock of the state directory. */
  readonly owner: boolean;
  readonly now: () => number;
  readonly statfs?: Statfs;
}

interface OpenedDatabase {
  readonly db: Database.Database;
  readonly quarantined: string | undefined;
}

/** Opens the database. Its owner renames a broken file, and starts a new one. @throws JobtailError store */
export function openDatabase(options: OpenDatabaseOptions, quarantined?: string): OpenedDatabase {
  const { file, owner, now } = options;
  if (!owner && isMissing(file)) throw withoutState(file);
  try {
    return { db: openAndMigrate(options), quarantined };
  } catch (error) {
    if (!owner && isOfWriting(error)) return { db: openForReading(file, error), quarantined };
    if (!owner || !isBroken(error) || quarantined !== undefined) throw asStoreError(error, file);
    return openDatabase(options, setAside(file, now()));
  }
}

const withoutState = (file: string) =>
  new JobtailError('store', `there is no state in ${path.dirname(file)} yet`, {
    hint: 'start the agent once (agent run), or watch a job (agent watch JOB)',
  });

/** @throws JobtailError if the user may not look for it */
function isMissing(file: string): boolean {
  try {
    return fs.statSync(file, { throwIfNoEntry: false }) === undefined;
  } catch (thrown) {
    throw withOwner(asJobtailError(thrown), path.dirname(file));
  }
}

/** What marks a database in the header as one with a write-ahead log (https://sqlite.org/fileformat2.html). */
const WAL_BYTES = { start: 18, end: 20 };

/**
 * What was committed before nothing could be written any more: the disk is full or read-only. Where not even the memory
 * that SQLite shares can be made, the log is empty or lost, and the database is read as it is.
 * @throws JobtailError of `unwritable` if it cannot be read either
 */
function openForReading(file: string, unwritable: unknown): Database.Database {
  const sources = [() => file, () => fs.readFileSync(file).fill(1, WAL_BYTES.start, WAL_BYTES.end)];
  for (const source of sources) {
    let db: Database.Database | undefined;
    try {
      db = openNative(source(), { readonly: true, timeout: BUSY_TIMEOUT_MS });
      requireVersion(db, file);
      return db;
    } catch (error) {
      db?.close();
      if (error instanceof JobtailError) throw error;
    }
  }
  throw asStoreError(unwritable, file);
}

function openAndMigrate({ file, owner, now, statfs }: OpenDatabaseOptions): Database.Database {
  if (file !== IN_MEMORY) (owner ? makePrivateDatabase : requireRegularDatabase)(file);
  const db = openNative(file, { timeout: BUSY_TIMEOUT_MS });
  try {
    const isShared = file !== IN_MEMORY && isOnNetworkFileSystem(path.dirname(file), statfs);
    db.exec(`PRAGMA journal_mode = ${isShared ? 'DELETE' : 'WAL'}`);
    db.exec('PRAGMA synchronous = FULL');
    // Rows of a job go with it. It is the default of better-sqlite3, but not that of SQLite.
    db.exec('PRAGMA foreign_keys = ON');
    if (owner) {
      checkPages(db);
      migrate(db, file, now());
    }
    requireVersion(db, file);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function checkPages(db: Database.Database): void {
  const found = pragma(db, 'quick_check(1)');
  if (found !== 'ok') throw new BrokenDatabase(String(found));
}

class BrokenDatabase extends Error {}

function isBroken(error: unknown): boolean {
  if (error instanceof BrokenDatabase) return true;
  const code = error instanceof Database.SqliteError ? error.code : '';
  return code.startsWith('SQLITE_CORRUPT') || code === 'SQLITE_NOTADB';
}

/** In one transaction: after a kill or a failure, the older program can continue. */
function migrate(db: Database.Database, file: string, now: number): void {
  const version = versionOf(db);
  if (version >= NEWEST_VERSION || isUnsupported(version)) return;
  if (version > 0) {
    const backup = `${file}${BACKUP}${NEWEST_VERSION}.${stamp(now)}`;
    // Renamed when complete: a kill leaves only a partial copy, which is made again.
    const partial = `${file}${BACKUP}${NEWEST_VERSION}.partial`;
    for (const suffix of ['', '-journal']) fs.rmSync(partial + suffix, { force: true });
    keepAlive(db.prepare('VACUUM INTO ?')).run(partial);
    fs.renameSync(partial, backup);
  }
  const change = db.transaction(() => {
    for (const sql of version === 0 ? [SCHEMA] : UPGRADES.slice(VERSIONS.indexOf(version))) db.exec(sql);
    db.exec(`PRAGMA user_version = ${NEWEST_VERSION}`);
  });
  try {
    change.immediate();
  } catch (error) {
    if (!isOfTables(error)) throw error;
    const formats = `from format ${version} to ${NEWEST_VERSION}`;
    throw new JobtailError('store', `${file} cannot be upgraded ${formats}: ${(error as Error).message}`, {
      hint: `keep the older version (the file is unchanged), or ${beginAnew(file)}`,
    });
  }
}

/** Older, or between two releases. */
const isUnsupported = (version: number) => version > 0 && version < NEWEST_VERSION && !VERSIONS.includes(version);

const isOfTables = (error: unknown) =>
  error instanceof Database.SqliteError && /^SQLITE_(ERROR|CONSTRAINT)/.test(error.code);

const beginAnew = (file: string) =>
  `move ${file} away: offsets are recovered from the mirrors; jobs that a command watched have to be watched again`;

function requireVersion(db: Database.Database, file: string): void {
  const version = versionOf(db);
  const refused = (code: 'config' | 'store', age: string, hint: string) =>
    new JobtailError(code, `${file} was written by ${age} version of the agent (its format is ${version})`, { hint });
  if (version > NEWEST_VERSION) {
    const hint = `this version reads up to format ${NEWEST_VERSION}: install the newer agent. To keep this version, stop the agent, and put back the copy ${file}${BACKUP}${version}.TIME (docs/install.md) or ${beginAnew(file)}`;
    throw refused('config', 'a newer', hint);
  }
  // A kill or a full disk may have left it so.
  if (version === 0 && !isServed(path.dirname(file))) throw withoutState(file);
  if (version === 0)
    throw new JobtailError('store', `another process is creating ${file}`, { hint: 'try again in a moment' });
  if (isUnsupported(version)) {
    const hint = `this version upgrades from format ${OLDEST_VERSION} (0.2.0) on: stop the agent and ${beginAnew(file)}`;
    throw refused('config', 'an unsupported older', hint);
  }
  if (version < NEWEST_VERSION) {
    throw refused(
      'store',
      'an older',
      'start or restart the agent once with this version: it brings the state up to date',
    );
  }
}

function versionOf(db: Database.Database): number {
  return Number(pragma(db, 'user_version'));
}

const stamp = (now: number) => new Date(now).toISOString().replaceAll(':', '-');

function setAside(file: string, now: number): string {
  const kept = `${file}.broken-${stamp(now)}`;
  fs.renameSync(file, kept);
  for (const suffix of ['-wal', '-shm', '-journal']) {
    if (fs.existsSync(file + suffix)) fs.renameSync(file + suffix, kept + suffix);
  }
  return kept;
}
