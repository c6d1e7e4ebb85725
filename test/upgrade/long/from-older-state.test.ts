/**
 * The state of an older program, recorded when that program was killed in the middle of its work (record-state.ts), and
 * taken up by this one: no byte is read again, no generation is made up.
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { expect, it, type TestContext } from 'vitest';
import type { JobDescription } from '../../../simulator/control.ts';
import type { LiveFileName } from '../../../src/job.ts';
import { FILE_TYPE_OF } from '../../../src/remote/soap/contract.ts';
import { readBootId } from '../../../src/system/directories.ts';
import { Place } from '../../support/e2e-place.ts';
import type { SandboxService } from '../../support/e2e-sandbox.ts';
import { PATIENCE, until } from '../../support/e2e-until.ts';
import { configOf, JOBS, remoteFile } from '../half-way.ts';

const ARCHIVE = fileURLToPath(new URL('../state-of-0.2.0.tar.gz', import.meta.url));
/** Before the committed position: the overlap (256), and blocks of the service to both sides. */
const OVERLAP = 256 + 2 * 1024;

interface LiveRow {
  readonly job_id: string;
  readonly task_id: string;
  readonly file: string;
  readonly position: number;
  readonly generation: number;
}

/** The recorded state in a place, and a cluster whose jobs are as they were then. */
async function recorded(context: TestContext) {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  const jobs = new Map<string, JobDescription>();
  for (const spec of JOBS) jobs.set(spec.jobId, await sandbox.submit(spec));
  execFileSync('tar', ['--no-same-owner', '-xzf', ARCHIVE, '-C', place.directory]);
  for (const [id, job] of jobs) {
    const from = path.join(place.directory, 'remote', id);
    for (const file of fs.readdirSync(from)) fs.copyFileSync(path.join(from, file), remoteFile(job, file));
  }
  const database = path.join(place.state, 'agent.db');
  const rows = asOnThisMachine(database, place, sandbox);
  place.writeConfig(configOf(place, sandbox));
  return { place, sandbox, jobs, database, rows };
}

/** What differs from the machine of the recording: inodes, times, the boot and the address of the service. */
function asOnThisMachine(database: string, place: Place, sandbox: SandboxService): readonly LiveRow[] {
  const db = new Database(database);
  try {
    const rows = db.prepare('SELECT job_id, task_id, file, position, generation FROM live_files').all() as LiveRow[];
    const change = db.prepare(
      'UPDATE live_files SET inode = ?, modified_ns = ? WHERE task_id = ? AND file = ? AND inode IS NOT NULL',
    );
    for (const { job_id: jobId, task_id: taskId, file } of rows) {
      const { ino, mtimeNs } = fs.statSync(place.mirrorOf(jobId, taskId, file), { bigint: true });
      change.run(String(ino), String(mtimeNs), taskId, file);
    }
    db.prepare('UPDATE live_files SET boot_id = ? WHERE boot_id IS NOT NULL').run(readBootId());
    db.prepare('UPDATE habits SET service = ?').run(`${sandbox.baseUrl}/FileTransferWs`);
    return rows;
  } finally {
    db.close();
  }
}

/** Waits until the mirrors of the running job have the bytes of its remote files, and all of them are committed. */
async function committed(place: Place, job: JobDescription | undefined) {
  const directory = path.dirname(remoteFile(job, 'stdout'));
  const files = ['stdout', 'stderr', 'log', 'progress'].filter((file) => fs.existsSync(remoteFile(job, file)));
  expect(files.length, directory).toBeGreaterThanOrEqual(3);
  await until('all to be committed', async () => {
    const shown = (await place.status('701')).jobs[0]?.files ?? [];
    return files.every((file) => {
      const remote = fs.readFileSync(remoteFile(job, file));
      const mirror = place.mirrorOf('701', '9701', file);
      const bytes = shown.find((one) => one.file === file)?.bytes;
      return bytes === remote.length && fs.existsSync(mirror) && fs.readFileSync(mirror).equals(remote);
    });
  });
}

it.concurrent('the state of 0.2.0 goes on where it was', PATIENCE, async (context) => {
  const { place, sandbox, jobs, rows } = await recorded(context);
  const job = jobs.get('701');
  const mirrorOf = (file: string) => place.mirrorOf('701', '9701', file);
  // The recording is half-way: bytes that are not committed, a second generation, a cut character, a partial result.
  expect(rows.some((row) => fs.statSync(mirrorOf(row.file)).size > row.position && row.job_id === '701')).toBe(true);
  expect(rows.some(({ generation }) => generation === 2)).toBe(true);
  const names = () => fs.readdirSync(path.dirname(mirrorOf('stdout'))).sort();
  const inodes = () => names().map((name) => fs.statSync(path.join(path.dirname(mirrorOf('stdout')), name)).ino);
  const before = { names: names(), inodes: inodes() };
  const former = fs.readFileSync(`${mirrorOf('stdout')}.1`);
  const ended = fs.readFileSync(place.mirrorOf('702', '9702', 'stdout'));

  fs.appendFileSync(remoteFile(job, 'stdout'), 'and it goes on\n');
  fs.appendFileSync(remoteFile(job, 'stderr'), 'and it goes on\n');
  fs.appendFileSync(remoteFile(job, 'log'), Buffer.concat([Buffer.from('Č').subarray(1), Buffer.from('as\n')]));
  fs.appendFileSync(remoteFile(jobs.get('702'), 'stdout'), 'not followed any more\n');
  const agent = await place.run();
  await committed(place, job);

  const asked = (await sandbox.calls()).flatMap(({ entries = [] }) => entries);
  expect(asked.length).toBeGreaterThan(0);
  for (const entry of asked) {
    const row = rows.find((one) => FILE_TYPE_OF[one.file as LiveFileName] === entry?.fileType && one.job_id === '701');
    expect(Number(entry?.offset), JSON.stringify(entry)).toBeGreaterThanOrEqual((row?.position ?? Infinity) - OVERLAP);
  }
  const raw = (await sandbox.calls()).map((call) => call.path ?? '').filter((name) => name.includes('stdout'));
  expect(raw).toEqual([]);
  expect(names()).toEqual(before.names);
  expect(inodes()).toEqual(before.inodes);
  expect(fs.readFileSync(`${mirrorOf('stdout')}.1`).equals(former)).toBe(true);
  const { jobs: followed } = await place.status('701');
  expect(followed[0]?.files.map(({ file, generation }) => ({ file, generation }))).toEqual(
    rows
      .filter((row) => row.job_id === '701')
      .map(({ file, generation }) => ({ file, generation }))
      .sort(asShown),
  );
  // A job that was unwatched stays so.
  expect(fs.readFileSync(place.mirrorOf('702', '9702', 'stdout')).equals(ended)).toBe(true);
  expect((await place.status()).jobs.map(({ jobId }) => jobId)).toEqual(['701']);
  await place.verified('701');
  expect(agent.log.filter(({ level }) => level === 'error')).toEqual([]);
});

const ORDER = ['stdout', 'stderr', 'log', 'progress'];
const asShown = (one: { readonly file: string }, other: { readonly file: string }) =>
  ORDER.indexOf(one.file) - ORDER.indexOf(other.file);

it.concurrent('the state of 0.2.0 that is moved away is found again from the mirrors', PATIENCE, async (context) => {
  const { place, jobs, database } = await recorded(context);
  for (const suffix of ['', '-wal', '-shm']) fs.rmSync(database + suffix, { force: true });
  const mirror = place.mirrorOf('701', '9701', 'stdout');
  const { ino } = fs.statSync(mirror);
  const stdout = remoteFile(jobs.get('701'), 'stdout');
  fs.appendFileSync(stdout, 'and it goes on\n');
  // The recorded log ends within a character: its mirror is behind until the character is whole.
  const log = remoteFile(jobs.get('701'), 'log');
  fs.appendFileSync(log, Buffer.concat([Buffer.from('Č').subarray(1), Buffer.from('as\n')]));
  await place.run();
  await committed(place, jobs.get('701'));
  expect(fs.statSync(mirror).ino).toBe(ino);
  expect(fs.existsSync(`${mirror}.2`)).toBe(false);
  await place.verified('701');
});
