/** The database of the state directory when it is broken, gone, locked, or on a file system that cannot share memory. */
import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { EXIT, JobtailError } from '../../src/errors.ts';
import type { JobId } from '../../src/job.ts';
import { isOnNetworkFileSystem, openDatabase, type Statfs } from '../../src/store/database.ts';
import { lockDirectory } from '../../src/store/lock.ts';
import { asStoreError, openNative } from '../../src/store/sql.ts';
import { Store } from '../../src/store/store.ts';
import { errorOf } from '../support/errors.ts';
import { openFilesIn, temporaryDirectory } from '../support/temp-directory.ts';

const NOW = Date.UTC(2026, 10, 5, 6, 7, 8);
const JOB = '501' as JobId;

function openStore(directory: string, owner = true): Store {
  return new Store({ directory, service: 'x', owner, now: () => NOW });
}

/** A state directory with a job in it, closed. */
function someState(): { readonly directory: string; readonly file: string } {
  const directory = temporaryDirectory();
  const store = openStore(directory);
  const order = { jobId: JOB, tasks: [], files: [], results: true, settleAfterMs: null, source: 'config' } as const;
  store.transaction(() => store.jobs.watch(order, NOW));
  store.close();
  return { directory, file: path.join(directory, 'agent.db') };
}

it.each([
  ['with a torn header', (file: string) => fs.writeFileSync(file, fs.readFileSync(file).fill(0x2a, 0, 100))],
  ['with a page of zeros', (file: string) => fs.writeFileSync(file, fs.readFileSync(file).fill(0, 4096, 8192))],
  ['that was cut', (file: string) => fs.truncateSync(file, 5000)],
  ['that is something else', (file: string) => fs.writeFileSync(file, 'all kinds of text\n'.repeat(1000))],
])('a broken database %s is set aside whole, under a name with the time, by the owner alone', (_, harm) => {
  const { directory, file } = someState();
  harm(file);
  const broken = fs.readFileSync(file);
  // A command that only looks may be the first one to meet it.
  try {
    openStore(directory, false).close();
  } catch (error) {
    expect(error).toMatchObject({ code: 'store', hint: expect.stringContaining('sets a corrupt state aside') });
  }
  expect(fs.readFileSync(file).equals(broken)).toBe(true);

  const store = openStore(directory);
  expect(store.quarantined).toBe(`${file}.broken-2026-11-05T06-07-08.000Z`);
  expect(fs.readFileSync(store.quarantined ?? '').equals(broken)).toBe(true);
  expect(store.jobs.all()).toEqual([]);
  store.close();
  expect(openFilesIn(directory)).toBe(0);
  const next = openStore(directory);
  expect(next.quarantined).toBeUndefined();
  next.close();
});

it.each(['', '-wal', '-shm', '-journal'])('a directory in the place of agent.db%s is refused', (suffix) => {
  const { directory, file } = someState();
  fs.rmSync(file + suffix, { force: true });
  fs.mkdirSync(file + suffix);
  expect(errorOf(() => openStore(directory)).message).toContain(`${file}${suffix} is no regular file`);
});

it('a database that was deleted is made anew, also where its log was left', () => {
  const { directory, file } = someState();
  const before = openStore(directory);
  before.jobs.setState(JOB, 'ended');
  // As a kill leaves it: with a log.
  const log = fs.readFileSync(`${file}-wal`);
  expect(log.length).toBeGreaterThan(0);
  before.close();
  fs.writeFileSync(`${file}-wal`, log);
  fs.rmSync(file);
  const store = openStore(directory);
  expect(store.jobs.all()).toEqual([]);
  expect(store.quarantined).toBeUndefined();
  store.close();
});

it('a database that was deleted is reported to a command that only looks, with what to do', () => {
  const directory = temporaryDirectory();
  const error = errorOf(() => openStore(directory, false));
  expect(error).toMatchObject({ code: 'store', message: `there is no state in ${directory} yet` });
  expect(fs.readdirSync(directory)).toEqual([]);
});

it.each<[string, boolean, (directory: string) => void]>([
  ['it is there', false, () => {}],
  ['it was removed', true, (directory) => fs.rmSync(directory, { recursive: true })],
  ['a file took the place of its directory', true, (directory) => replace(directory, fs.writeFileSync)],
  ['it cannot be looked at', false, (directory) => replace(directory, (at) => fs.symlinkSync(at, at))],
])('where %s, a database is gone: %s', (_, isGone, happens) => {
  const directory = path.join(temporaryDirectory(), 'state');
  fs.mkdirSync(directory);
  const store = openStore(directory);
  happens(directory);
  expect(store.isGone()).toBe(isGone);
  store.close();
});

/** Moves a directory away, and puts something else in its place. */
function replace(directory: string, put: (at: string, content: string) => void): void {
  fs.renameSync(directory, `${directory}-before`);
  put(directory, 'a file');
}

type SqliteRow = [sqlite: string, code: string, message: (file: string) => string, hint: string];

it.each<SqliteRow>([
  ...['SQLITE_READONLY', 'SQLITE_READONLY_DIRECTORY', 'SQLITE_CANTOPEN_ISDIR', 'SQLITE_PERM'].map(
    (sqlite): SqliteRow => [sqlite, 'permission', (file) => `${file} cannot be opened for writing`, 'may write it'],
  ),
  ['SQLITE_FULL', 'disk-full', (file) => `no space left on device: ${file}`, 'continues by itself'],
  ['SQLITE_IOERR_LOCK', 'store', (file) => `the file system of ${path.dirname(file)} has no locks for files`, 'flock'],
  ['SQLITE_BUSY_RECOVERY', 'store', (file) => `${file} is locked by another process`, 'fuser'],
  ['SQLITE_IOERR_WRITE', 'store', (file) => `cannot use ${file} (SQLITE_IOERR_WRITE)`, 'dmesg'],
])('what SQLite reports becomes an error with what to do: %s', (sqlite, code, message, hint) => {
  const { file } = someState();
  const cause = new Database.SqliteError('attempt to write', sqlite);
  const error = asStoreError(cause, file);
  expect(error).toMatchObject({ code, message: message(file), hint: expect.stringContaining(hint) });
  if (sqlite !== 'SQLITE_IOERR_LOCK') expect(error.cause).toBe(cause);
  const missing = asStoreError(cause, '/nowhere/agent.db');
  if (code === 'permission')
    expect(missing.message).toMatch(/^cannot write .nowhere.agent.db: no such file or directory/);
});

it('a database that another process locks is named, whichever way it is used', () => {
  const { directory, file } = someState();
  const store = openStore(directory);
  const other = new Database(file);
  other.exec('BEGIN IMMEDIATE');
  try {
    const error = errorOf(() => store.jobs.setState(JOB, 'ended'));
    expect(error).toMatchObject({ code: 'store', message: `${file} is locked by another process` });
    expect(error.hint).toContain('fuser');
    expect(error.policy).toMatchObject({ exitCode: EXIT.local, isAlarm: true });
    expect(store.jobs.all(), 'it can be read').toMatchObject([{ jobId: JOB, state: 'watched' }]);
  } finally {
    other.exec('ROLLBACK');
    other.close();
  }
  store.jobs.setState(JOB, 'ended');
  expect(store.jobs.get(JOB)?.state).toBe('ended');
  store.close();
});

const ofType =
  (type: number): Statfs =>
  (directory) => ({ ...fs.statfsSync(directory), type });

it('a state directory on a network file system is known by its type', () => {
  // NFS, SMB, also as the system gives it where the number is signed, SMB 2, Lustre, GPFS, BeeGFS, Ceph, FUSE (sshfs), 9p.
  const network = [0x6969, 0xff534d42, 0xff534d42 | 0, 0xfe534d42, 0x0bd00bd0, 0x47504653, 0x19830326];
  network.push(0x00c36400, 0x65735546, 0x01021997);
  // ext4, XFS, tmpfs, overlayfs.
  const local = [0xef53, 0x58465342, 0x01021994, 0x794c7630];
  expect([...network, ...local].filter((type) => isOnNetworkFileSystem('/', ofType(type)))).toEqual(network);
});

it('a network file system is used without a write-ahead log, also when the state comes from a disk that had one', () => {
  const { directory, file } = someState();
  const open = (statfs?: Statfs) => {
    const { db } = openDatabase({ file, owner: true, now: () => NOW, ...(statfs && { statfs }) });
    const [mode, flushes] = ['journal_mode', 'synchronous'].map((name) => db.pragma(name, { simple: true }));
    db.exec("UPDATE jobs SET state = 'ended'");
    const beside = fs.readdirSync(directory).filter((name) => name.startsWith('agent.db-'));
    db.close();
    return [mode, flushes, ...beside];
  };
  expect(open()).toEqual(['wal', 2, 'agent.db-shm', 'agent.db-wal']);
  expect(open(ofType(0x6969))).toEqual(['delete', 2]);
  expect(open().slice(0, 2)).toEqual(['wal', 2]);
});

it('a native part that cannot be loaded is named, with what to do', () => {
  const nativeBinding = path.join(temporaryDirectory(), 'part.node');
  const open = () => errorOf(() => openNative(':memory:', { nativeBinding }));
  const missing = open();
  fs.writeFileSync(nativeBinding, 'no library');
  for (const error of [missing, open()])
    expect(error).toMatchObject({
      ...{ code: 'local-io', message: expect.stringMatching(/^cannot load the native module better-sqlite3: .+$/) },
      ...{ hint: expect.stringContaining('npm rebuild --global better-sqlite3'), cause: expect.any(Error) },
    });
});

it('the store is closed again if a table is missing', () => {
  const { directory, file } = someState();
  const db = new Database(file);
  db.exec('DROP TABLE capabilities');
  db.close();
  expect(errorOf(() => openStore(directory)).code).toBe('store');
  expect(openFilesIn(directory)).toBe(0);
});

it('a store that is only read says when another one wrote, and writes nothing itself', () => {
  const directory = temporaryDirectory();
  const owner = openStore(directory);
  const reader = new Store({ directory, service: 'x', owner: false, now: () => NOW });
  reader.onlyRead();
  const before = reader.version();
  expect(reader.version()).toBe(before);
  owner.capabilities.set('a', 'b');
  expect(reader.version()).not.toBe(before);
  const own = owner.version();
  owner.capabilities.set('a', 'b');
  // It is known.
  expect(owner.version()).toBe(own);
  owner.capabilities.set('a', 'd');
  expect(owner.version()).not.toBe(own);
  expect(() => reader.capabilities.set('a', 'c')).toThrow(JobtailError);
  expect(owner.capabilities.all()).toEqual([{ name: 'a', value: 'd' }]);
  reader.close();
  owner.close();
});

it('no file of the state can be read by others, nor locked, whatever the umask and whatever an older version made', () => {
  const directory = temporaryDirectory();
  const umask = process.umask(0);
  try {
    for (const wide of [[], ['agent.db', 'agent.lock']]) {
      for (const file of wide) fs.chmodSync(path.join(directory, file), 0o644);
      const lock = lockDirectory(directory);
      const store = openStore(directory);
      store.wake();
      const files = fs.readdirSync(directory);
      const open = files.filter((file) => (fs.statSync(path.join(directory, file)).mode & 0o077) !== 0);
      store.close();
      lock.release();
      expect(files).toEqual(expect.arrayContaining(['agent.db', 'agent.db-wal', 'agent.lock', 'wake']));
      expect(open).toEqual([]);
    }
  } finally {
    process.umask(umask);
  }
});
