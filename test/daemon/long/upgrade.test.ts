/** Bringing the state of an older version up to date is safe to be killed in. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { NEWEST_VERSION as NEWEST, OLDEST_VERSION as OLDEST } from '../../../src/store/schema.ts';
import { Store } from '../../../src/store/store.ts';
import { READS_TYPESCRIPT } from '../../support/e2e-program.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';
import { putReleased } from '../../upgrade/released-state.ts';

const open = (directory: string) => new Store({ directory, service: 'x', owner: true, now: Date.now });
const versionOf = (file: string) => {
  const db = new Database(file, { readonly: true });
  try {
    return Number(db.pragma('user_version', { simple: true }));
  } finally {
    db.close();
  }
};

/** The state as the oldest version that is upgraded left it, with a job in it. */
function oldState(): { readonly directory: string; readonly file: string } {
  const directory = temporaryDirectory();
  const file = putReleased(directory);
  const db = new Database(file);
  db.exec("INSERT INTO jobs (job_id, source, state, results, watched_at) VALUES ('501', 'config', 'watched', 1, 7)");
  db.exec("INSERT INTO live_files (job_id, task_id, file, position) VALUES ('501', '9001', 'stdout', 42)");
  db.close();
  return { directory, file };
}

const backupsIn = (directory: string) => fs.readdirSync(directory).filter((name) => name.includes('.before-v'));

it('an upgrade of the state is safe to be killed in at any moment', () => {
  const { directory, file } = oldState();
  // Enough to copy and to convert that there is a moment to be killed in.
  const db = new Database(file);
  const insert = db.prepare(
    "INSERT INTO result_files (job_id, name, state, listed_at, due_at, interval_ms) VALUES ('501', ?, 'synced', 1, 1, 1)",
  );
  db.transaction(() => {
    for (let row = 0; row < 30_000; row++) insert.run(`/${row}/${'x'.repeat(100)}`);
  })();
  db.close();
  const script = new URL('../../../src/store/store.ts', import.meta.url).href;
  const start = `import(${JSON.stringify(script)}).then(({ Store }) => {
    process.send('begun');
    new Store({ directory: ${JSON.stringify(directory)}, service: 'x', owner: true, now: Date.now }).close();
  })`;
  const killer = `
    const { spawn } = require('node:child_process');
    const child = spawn(process.execPath, ${JSON.stringify([...READS_TYPESCRIPT, '-e', start])}, { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
    child.once('message', () => setTimeout(() => child.kill('SIGKILL'), Number(process.argv[1])));`;
  for (const delayMs of [0, 3, 8, 15, 30, 60, 120]) {
    execFileSync(process.execPath, ['-e', killer, String(delayMs)]);
    expect([OLDEST, NEWEST]).toContain(versionOf(file));
  }
  const store = open(directory);
  const jobId = store.jobs.all()[0]?.jobId ?? ('' as never);
  const rows = [...store.results.ofJob(jobId)];
  expect(rows).toHaveLength(30_000);
  // Nothing was known of the time of any, so none is spared.
  expect(rows.every(({ stamp, stampProven }) => stamp === null && !stampProven)).toBe(true);
  expect(store.results.counts(jobId)).toMatchObject({ listed: 30_000, synced: 30_000 });
  store.close();
  // Every copy that has its name is whole.
  for (const backup of backupsIn(directory).filter((name) => !name.includes('.partial'))) {
    const copy = new Database(path.join(directory, backup), { readonly: true });
    expect(copy.pragma('quick_check', { simple: true })).toBe('ok');
    expect(copy.prepare('SELECT count(*) AS rows FROM result_files').get()).toEqual({ rows: 30_000 });
    copy.close();
  }
});
