/**
 * The objects of better-sqlite3 12 on Node.js 24.19 and later: when the garbage collection takes one of them, the process
 * is ended ("Assertion failed: (env) != nullptr"), because what removes them looks for an environment that is not there at
 * that moment. So there none is given up. Version 13 is made otherwise, and needs Node.js 22.
 */
import { createRequire } from 'node:module';
import type Database from 'better-sqlite3';

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

/** The version of SQLite. @throws what loading the module throws: not imported, so that this can be reported */
export function sqliteVersion(): string {
  const Constructor = createRequire(import.meta.url)('better-sqlite3') as typeof Database;
  const db = keepAlive(new Constructor(':memory:'));
  try {
    return String(keepAlive(db.prepare('SELECT sqlite_version()')).pluck().get());
  } finally {
    db.close();
  }
}
