/** A database of the release 0.2.0, the oldest that is upgraded, as that program made it. */
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';

const ARCHIVE = fileURLToPath(new URL('state-of-0.2.0.tar.gz', import.meta.url));

/** Puts it into a directory, without its jobs; returns its file. */
export function putReleased(directory: string): string {
  const unpack = ['--no-same-owner', '--strip-components=1', '-xzf', ARCHIVE, '-C', directory];
  execFileSync('tar', [...unpack, 'state/agent.db', 'state/agent.db-wal']);
  const file = path.join(directory, 'agent.db');
  const db = new Database(file);
  db.pragma('foreign_keys = ON');
  db.exec('DELETE FROM jobs');
  db.close();
  return file;
}
