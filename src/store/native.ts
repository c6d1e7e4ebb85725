/**
 * The objects of better-sqlite3 12 on Node.js 24.19 and later: when the garbage collection takes one of them, the process
 * is ended ("Assertion failed: (env) != nullptr"), because what removes them looks for an environment that is not there at
 * that moment. So there none is given up. Version 13 is made otherwise, and needs Node.js 22.
 */
import Database from 'better-sqlite3';
import { JobtailError } from '../errors.ts';

const [MAJOR = 0] = process.versions.node.split('.').map(Number);
const kept: unknown[] = [];

/** The object, which stays as long as the process. Closed ones hold nothing but themselves. */
export function keepAlive<Native extends object>(native: Native): Native {
  if (MAJOR >= 24) kept.push(native);
  return native;
}

/** What a pragma says; one that sets something is said by `exec`. Not by `Database.pragma`, whose statements nobody keeps. */
export function pragma(db: Database.Database, name: string): unknown {
  return keepAlive(db.prepare(`PRAGMA ${name}`))
    .pluck()
    .get();
}

/** Opens a database file. @throws what better-sqlite3 throws; JobtailError local-io if its native part cannot be loaded */
export function openNative(file: string, options: Database.Options): Database.Database {
  try {
    return keepAlive(new Database(file, options));
  } catch (error) {
    if (!(error instanceof Error) || !isLoadFailure(error)) throw error;
    const [reason = ''] = error.message.split('\n');
    throw new JobtailError('local-io', `the native module better-sqlite3 cannot be loaded: ${reason}`, {
      cause: error,
      hint: 'run "npm rebuild --global better-sqlite3", which needs a C++ compiler; without one, use the archive that has its own Node.js (docs/install.md)',
    });
  }
}

/** It was not built, or for another release of Node.js or another system. */
const isLoadFailure = (error: NodeJS.ErrnoException) =>
  error.code === 'ERR_DLOPEN_FAILED' || /^Could not locate the bindings file/.test(error.message);

/** The version of SQLite. @throws as `openNative` */
export function sqliteVersion(): string {
  const db = openNative(':memory:', {});
  try {
    return String(keepAlive(db.prepare('SELECT sqlite_version()')).pluck().get());
  } finally {
    db.close();
  }
}
