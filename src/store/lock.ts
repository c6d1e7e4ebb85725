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

/** command: a command that serves the state while no agent runs, and releases it to an agent that waits. */
export type Role = 'agent' | 'command';

export interface Holder {
  /** Null if it is unknown. */
  readonly pid: number | null;
  readonly role: Role;
  /** ` on HOST` if it is on another host, or in a container; where its pid is another one. */
  readonly host: string;
}

const lockFile = (directory: string) => path.join(directory, 'agent.lock');
const waitingFile = (directory: string) => path.join(directory, 'agent.waiting');
const pidFile = (directory: string) => path.join(directory, 'agent.pid');

/** A reader that checks who has the lock holds it for a moment; taking the lock waits that long. */
const BUSY_TIMEOUT_MS = 1_000;

/** @throws JobtailError locked */
export function lockDirectory(directory: string, role: Role = 'agent'): DirectoryLock {
  const db = locked(lockFile(directory));
  if (db === undefined) throw lockedBy(directory, holderOf(directory));
  try {
    if (fs.lstatSync(pidFile(directory), { throwIfNoEntry: false })) fs.unlinkSync(pidFile(directory));
    fs.writeFileSync(pidFile(directory), `${process.pid}\n${os.hostname()}\n${role}\n`, { flag: 'wx', mode: 0o600 });
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

/** Requests the lock from the command that has it. @throws JobtailError locked if another agent waits for it */
export function waitAsAgent(directory: string): DirectoryLock {
  const db = locked(waitingFile(directory));
  if (db === undefined) throw lockedBy(directory, undefined);
  return { release: () => void db.close() };
}

/** Whether the lock is not for a command: another process has it, or an agent waits for it. */
export const isServed = (directory: string) => isLocked(lockFile(directory)) || isAgentWaiting(directory);

export const isAgentWaiting = (directory: string) => isLocked(waitingFile(directory));

/** The process with the lock; undefined if no process has it. */
export function lockHolder(directory: string): Holder | undefined {
  if (!isLocked(lockFile(directory))) return undefined;
  return holderOf(directory) ?? { pid: null, role: 'agent', host: '' };
}

/** The running agent: a command that has the lock is none. */
export function runningAgent(directory: string): Holder | undefined {
  const holder = lockHolder(directory);
  return holder?.role === 'agent' ? holder : undefined;
}

function lockedBy(directory: string, holder: Holder | undefined): JobtailError {
  const who = holder === undefined ? '' : ` (pid ${holder.pid}${holder.host})`;
  return new JobtailError('locked', `another agent works on ${directory}${who}`, {
    hint: 'one agent at a time may use a state directory: stop the other one, or give this one its own state.directory',
  });
}

function locked(file: string): Database.Database | undefined {
  try {
    makePrivateDatabase(file);
  } catch (error) {
    // Another process that starts at the same time created it.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw asJobtailError(error);
  }
  return unlessBusy(file, { timeout: BUSY_TIMEOUT_MS }, 'BEGIN EXCLUSIVE');
}

function isLocked(file: string): boolean {
  if (!fs.existsSync(file)) return false;
  const db = unlessBusy(file, { timeout: 0, readonly: true }, 'SELECT 1 FROM sqlite_schema');
  db?.close();
  return db === undefined;
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

/** Earlier versions wrote no role. */
function holderOf(directory: string): Holder | undefined {
  const [digits = '', host = '', role = ''] = readStateFile(pidFile(directory))?.split('\n') ?? [];
  const pid = Number.parseInt(digits, 10);
  if (!Number.isSafeInteger(pid)) return undefined;
  const isElsewhere = host !== '' && host !== os.hostname();
  return { pid, role: role === 'command' ? role : 'agent', host: isElsewhere ? ` on ${printable(host)}` : '' };
}
