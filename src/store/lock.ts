/** The single writer of a state directory. The kernel releases its lock, an SQLite transaction, with the process. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import Database from 'better-sqlite3';
import { asJobtailError, JobtailError } from '../errors.ts';
import { printable } from '../printable.ts';
import { asStoreError, openNative, withoutLocks } from './sql.ts';
import { makePrivateDatabase, readStateFile, requireRegularDatabase } from './state-files.ts';

interface DirectoryLock {
  release(): void;
}

const lockFile = (directory: string) => path.join(directory, 'agent.lock');
const pidFile = (directory: string) => path.join(directory, 'agent.pid');

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
    const holder = holderOf(directory);
    const who = holder === undefined ? '' : ` (pid ${holder.pid}${onOtherHost(holder.host)})`;
    throw new JobtailError('locked', `another agent works on ${directory}${who}`, {
      hint: 'one agent at a time may use a state directory: stop the other one, or give this one its own state.directory',
    });
  }
  try {
    if (fs.lstatSync(pidFile(directory), { throwIfNoEntry: false })) fs.unlinkSync(pidFile(directory));
    fs.writeFileSync(pidFile(directory), `${process.pid}\n${os.hostname()}\n`, { flag: 'wx', mode: 0o600 });
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
  return db === undefined ? (holderOf(directory)?.pid ?? null) : undefined;
}

/** ` on HOST` if the process with the lock is on another host, or in a container; where its pid is another one. */
export const hostOfHolder = (directory: string) => onOtherHost(holderOf(directory)?.host);

const onOtherHost = (host: string | undefined) =>
  host === undefined || host === os.hostname() ? '' : ` on ${printable(host)}`;

function unlessBusy(file: string, options: Database.Options, sql: string): Database.Database | undefined {
  requireRegularDatabase(file);
  let db: Database.Database | undefined;
  try {
    db = openNative(file, options);
    db.exec(sql);
    return db;
  } catch (error) {
    db?.close();
    if (!isBusy(error)) throw asStoreError(error, file);
    // The holder writes its pid; without one, it may be that no process can have the lock.
    if (holderOf(path.dirname(file)) === undefined) requireLocks(path.dirname(file));
    return undefined;
  }
}

const isBusy = (error: unknown) => error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY');

/** A file system without locks reports each file as locked by another process. @throws JobtailError store */
function requireLocks(directory: string): void {
  const file = path.join(directory, `lock-test-${crypto.randomUUID()}`);
  let db: Database.Database | undefined;
  try {
    makePrivateDatabase(file);
    db = openNative(file, { timeout: 0 });
    db.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    if (isBusy(error)) throw withoutLocks(directory);
  } finally {
    db?.close();
    fs.rmSync(file, { force: true });
  }
}

function holderOf(directory: string): { readonly pid: number; readonly host: string | undefined } | undefined {
  const [digits = '', host = ''] = readStateFile(pidFile(directory))?.split('\n') ?? [];
  const pid = Number.parseInt(digits, 10);
  return Number.isSafeInteger(pid) ? { pid, host: host === '' ? undefined : host } : undefined;
}
