/**
 * The single writer of a state directory. The lock is an exclusive SQLite transaction on a file of its own. The kernel
 * releases it when the process ends, so no stale lock is left.
 */
import fs, { constants } from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { asJobtailError, JobtailError } from '../errors.ts';
import { asStoreError, openNative } from './sql.ts';
import { makePrivateDatabase, openStateFile, requireRegularDatabase } from './state-files.ts';

export interface DirectoryLock {
  release(): void;
}

const lockFile = (directory: string) => path.join(directory, 'agent.lock');
const pidFile = (directory: string) => path.join(directory, 'agent.pid');

/** More digits than any pid has. */
const MAX_DIGITS = 16;

/** A reader that checks who has the lock holds it for a moment; taking the lock waits that long. */
const BUSY_TIMEOUT_MS = 1_000;

export function lockDirectory(directory: string): DirectoryLock {
  try {
    makePrivateDatabase(lockFile(directory));
  } catch (error) {
    // Another agent that starts at the same time created it.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw asJobtailError(error);
  }
  const db = unlessBusy(lockFile(directory), { timeout: BUSY_TIMEOUT_MS }, 'BEGIN EXCLUSIVE');
  if (db === undefined) {
    const pid = holderOf(directory);
    throw new JobtailError('locked', `another agent works on ${directory}${pid === undefined ? '' : ` (pid ${pid})`}`, {
      hint: 'one agent at a time may use a state directory: stop the other one, or give this one its own state.directory',
    });
  }
  try {
    if (fs.lstatSync(pidFile(directory), { throwIfNoEntry: false })) fs.unlinkSync(pidFile(directory));
    fs.writeFileSync(pidFile(directory), `${process.pid}\n`, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    db.close();
    throw asJobtailError(Object.assign(error as Error, { path: pidFile(directory) }));
  }
  return {
    release() {
      fs.rmSync(pidFile(directory), { force: true });
      db.close();
    },
  };
}

/** The pid of the process with the lock, `null` if it is unknown; undefined if no process has it. */
export function lockHolder(directory: string): number | null | undefined {
  if (!fs.existsSync(lockFile(directory))) return undefined;
  const db = unlessBusy(lockFile(directory), { timeout: 0, readonly: true }, 'SELECT 1 FROM sqlite_schema');
  db?.close();
  return db === undefined ? (holderOf(directory) ?? null) : undefined;
}

function unlessBusy(file: string, options: Database.Options, sql: string): Database.Database | undefined {
  requireRegularDatabase(file);
  let db: Database.Database | undefined;
  try {
    db = openNative(file, options);
    db.exec(sql);
    return db;
  } catch (error) {
    db?.close();
    if (error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY')) return undefined;
    throw asStoreError(error, file);
  }
}

function holderOf(directory: string): number | undefined {
  const text = Buffer.alloc(MAX_DIGITS);
  try {
    const opened = openStateFile(pidFile(directory), constants.O_RDONLY);
    try {
      fs.readSync(opened, text);
    } finally {
      fs.closeSync(opened);
    }
  } catch {
    return undefined;
  }
  const pid = Number.parseInt(text.toString('latin1'), 10);
  return Number.isSafeInteger(pid) ? pid : undefined;
}
