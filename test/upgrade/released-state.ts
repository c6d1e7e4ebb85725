/** A database of the release 0.2.0, the oldest that is upgraded, as that program made it. */
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';

const ARCHIVE = fileURLToPath(new URL('state-of-0.2.0.tar.gz', import.meta.url));

/** Its state, its mirrors, and the files of the cluster at its end, each in a directory of its own. */
export function unpackReleased(directory: string, ...more: readonly string[]): void {
  execFileSync('tar', ['--no-same-owner', '-xzf', ARCHIVE, '-C', directory, ...more]);
}

/** Puts the database into a directory, without its jobs; returns its file. */
export function putReleased(directory: string): string {
  unpackReleased(directory, '--strip-components=1', 'state/agent.db', 'state/agent.db-wal');
  const file = path.join(directory, 'agent.db');
  const db = new Database(file);
  db.pragma('foreign_keys = ON');
  db.exec('DELETE FROM jobs');
  db.close();
  return file;
}
