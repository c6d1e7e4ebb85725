/** The state of an older program that was killed: this one reads no byte again, and makes up no generation. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { expect, it, type TestContext } from 'vitest';
import type { JobDescription } from '../../../simulator/control.ts';
import type { LiveFileName } from '../../../src/job.ts';
import { FILE_TYPE_OF } from '../../../src/remote/soap/contract.ts';
import { Place } from '../../support/e2e-place.ts';
import type { SandboxService } from '../../support/e2e-sandbox.ts';

const ARCHIVE = fileURLToPath(new URL('../state-of-0.2.0.tar.gz', import.meta.url));
/** Before the committed position: the overlap (256), and blocks of the service to both sides. */
const OVERLAP = 256 + 2 * 1024;

/** 701 grows, and is watched by the configuration; 702 was unwatched. */
const JOBS = ['701', '702'].map((jobId) => ({ jobId, tasks: [{ taskId: `9${jobId}` }] }));

/** Where the first task of a job writes: a live file by its name, or another one beside them. */
function remoteFile(job: JobDescription | undefined, file: string): string {
  const files = job?.tasks[0]?.files;
  if (files === undefined) throw new Error('the job has no task');
  return file in files ? files[file as keyof typeof files] : path.join(path.dirname(files.stdout), file);
}

const configOf = (place: Place, sandbox: SandboxService) =>
  place.configText(sandbox, {
    watch: JOBS.slice(0, 1).map(({ jobId, tasks }) => ({ job: jobId, tasks: tasks.map(({ taskId }) => taskId) })),
  });

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
  const rows = asOnThisMachine(place, sandbox);
  place.writeConfig(configOf(place, sandbox));
  return { place, sandbox, jobs, rows };
}

/** What differs from the machine of the recording: inodes, times and the address of the service. */
function asOnThisMachine(place: Place, sandbox: SandboxService): readonly LiveRow[] {
  const db = new Database(path.join(place.state, 'agent.db'));
  try {
    const rows = db.prepare('SELECT job_id, task_id, file, position, generation FROM live_files').all() as LiveRow[];
    const change = db.prepare(
      'UPDATE live_files SET inode = ?, modified_ns = ? WHERE task_id = ? AND file = ? AND inode IS NOT NULL',
    );
    for (const { job_id: jobId, task_id: taskId, file } of rows) {
      const { ino, mtimeNs } = fs.statSync(place.mirrorOf(jobId, taskId, file), { bigint: true });
      change.run(String(ino), String(mtimeNs), taskId, file);
    }
    db.prepare('UPDATE habits SET service = ?').run(`${sandbox.baseUrl}/FileTransferWs`);
    return rows;
  } finally {
    db.close();
  }
}

it('the state of 0.2.0 goes on where it was', async (context) => {
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
  if (job === undefined) throw new Error('the job is not there');
  for (const file of ['stdout', 'stderr', 'log'] as const) await place.mirrored(job, file);

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
  const generations = (files: readonly Pick<LiveRow, 'file' | 'generation'>[] = []) =>
    files.map(({ file, generation }) => `${file} ${generation}`).sort();
  expect(generations(followed[0]?.files)).toEqual(generations(rows.filter((row) => row.job_id === '701')));
  // A job that was unwatched stays so.
  expect(fs.readFileSync(place.mirrorOf('702', '9702', 'stdout')).equals(ended)).toBe(true);
  expect((await place.status()).jobs.map(({ jobId }) => jobId)).toEqual(['701']);
  await place.verified('701');
  expect(agent.log.filter(({ level }) => level === 'error')).toEqual([]);
});
