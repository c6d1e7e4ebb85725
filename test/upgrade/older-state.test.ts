/** States and mirrors of an older program: this one reads no byte again, makes up no generation, and mends what that could not. */
import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import { type JobId, keyText } from '../../src/job.ts';
import { Engine, JOB, STDOUT } from '../support/engine.ts';
import { ModelRemote } from '../support/model-remote.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';
import { putReleased, unpackReleased } from './released-state.ts';

const BYTES = Buffer.from('text \xff\xfe and on\n', 'latin1');

/** A state of 0.2.0 with one mirror that has `?` for two bytes. */
function olderState(directory: string): void {
  const mirror = path.join(directory, 'mirror', JOB, 'live', STDOUT.taskId, 'stdout.log');
  fs.mkdirSync(path.dirname(mirror), { recursive: true });
  fs.writeFileSync(mirror, 'text ?? and on\n');
  const { ino, mtimeNs } = fs.statSync(mirror, { bigint: true });
  fs.mkdirSync(path.join(directory, 'state'), { mode: 0o700 });
  const db = new Database(putReleased(path.join(directory, 'state')));
  db.prepare("INSERT INTO jobs (job_id, state, results, watched_at) VALUES (?, 'watched', 0, 0)").run(JOB);
  db.prepare(
    `INSERT INTO live_files (job_id, task_id, file, position, listed_name, inexact, inode, modified_ns, verified, mismatches)
      VALUES (?, ?, 'stdout', 15, '/another.txt', ?, ?, ?, 15, ?)`,
  ).run(
    ...[JOB, STDOUT.taskId, JSON.stringify([{ start: 5, length: 2, reason: 'refused' }]), String(ino), String(mtimeNs)],
    JSON.stringify([{ kind: 'decoder-changed', at: 0, reason: 'of an older version', generation: 1, seenAt: 0 }]),
  );
  db.close();
}

test.each([true, false])(
  'a mirror left incomplete by an older version goes on only with raw bytes (%s)',
  async (rawAccess) => {
    const directory = temporaryDirectory();
    olderState(directory);
    const remote = new ModelRemote();
    remote.rawAccess = rawAccess;
    remote.files.set(keyText(STDOUT), BYTES);
    const engine = new Engine({ directory, remote, now: () => 1_000_000 });
    onTestFinished(() => engine.kill());
    const row = () => engine.store.liveFiles.ofJob(JOB)[0];
    expect(row()).toMatchObject({ position: 5, verified: null, mismatches: [], listedName: null });
    expect(row()?.error).toMatchObject({
      code: 'stuck',
      message: 'the mirror ends at byte 5: an older version wrote ? in place of what follows',
    });
    await engine.poll();
    expect(fs.readFileSync(engine.mirror(STDOUT), 'latin1')).toBe(rawAccess ? BYTES.toString('latin1') : 'text ');
    expect(row()).toMatchObject({ position: rawAccess ? BYTES.length : 5, generation: 1, error: null });
  },
);

/** Before the committed position: the overlap (256), and blocks of the service to both sides. */
const OVERLAP = 256 + 2 * 1024;

test('the state of 0.2.0, which was killed, goes on where it was', async () => {
  const directory = temporaryDirectory();
  unpackReleased(directory);
  // Its job and task have the numbers of the engine; inodes, times and the service are those of the test.
  const live = path.join(directory, 'mirror', JOB, 'live', STDOUT.taskId);
  fs.mkdirSync(path.dirname(live), { recursive: true });
  fs.renameSync(path.join(directory, 'mirror/701/live/9701'), live);
  const db = new Database(path.join(directory, 'state', 'agent.db'));
  db.pragma('foreign_keys = OFF');
  for (const table of ['jobs', 'live_files', 'result_files', 'result_counts', 'result_passes'])
    db.prepare(`UPDATE ${table} SET job_id = ? WHERE job_id = '701'`).run(JOB);
  db.prepare("UPDATE live_files SET task_id = ? WHERE task_id = '9701'").run(STDOUT.taskId);
  for (const name of fs.readdirSync(live)) {
    const { ino, mtimeNs } = fs.statSync(path.join(live, name), { bigint: true });
    const change = db.prepare('UPDATE live_files SET inode = ?, modified_ns = ? WHERE job_id = ? AND file = ?');
    change.run(String(ino), String(mtimeNs), JOB, name.replace('.log', ''));
  }
  db.exec("UPDATE habits SET service = 'model'");
  db.close();

  const remote = new ModelRemote();
  for (const file of fs.readdirSync(path.join(directory, 'remote/701')))
    if (!file.includes('.'))
      remote.files.set(`${STDOUT.taskId}/${file}`, fs.readFileSync(path.join(directory, 'remote/701', file)));
  const time = { now: Date.parse('2026-11-27T00:00:00Z') };
  const engine = new Engine({ directory, remote, now: () => time.now });
  onTestFinished(() => engine.kill());
  const rows = engine.store.liveFiles.ofJob(JOB);
  // The recording is half-way: bytes that are not committed, a second generation, a cut character.
  expect(rows.map(({ file, generation }) => `${file} ${generation}`)).toEqual([
    ...['log 1', 'progress 1', 'stderr 1', 'stdout 2'],
  ]);
  const sizeOf = (file: string) => fs.statSync(path.join(live, `${file}.log`)).size;
  expect(rows.some(({ file, position }) => sizeOf(file) > position)).toBe(true);
  const inodes = () => fs.readdirSync(live).map((name) => [name, fs.statSync(path.join(live, name)).ino]);
  const before = inodes();
  const former = fs.readFileSync(path.join(live, 'stdout.log.1'));

  const grow = (file: string, bytes: Buffer) => {
    const name = `${STDOUT.taskId}/${file}`;
    remote.files.set(name, Buffer.concat([remote.files.get(name) ?? Buffer.alloc(0), bytes]));
  };
  for (const file of ['stdout', 'stderr']) grow(file, Buffer.from('and it goes on\n'));
  grow('log', Buffer.concat([Buffer.from('Č').subarray(1), Buffer.from('as\n')]));
  const offsets: number[] = [];
  remote.onPartRequest = ({ file, offset }) =>
    offsets.push(offset - (rows.find((row) => row.file === file)?.position ?? Number.POSITIVE_INFINITY));
  for (let polls = 0; polls < 3; polls += 1) {
    time.now += 10_000;
    expect([...(await engine.poll()).errors]).toEqual([]);
  }
  expect(Math.min(...offsets)).toBeGreaterThanOrEqual(-OVERLAP);
  expect(remote.rawBytes).toBe(0);
  for (const [name, bytes] of remote.files)
    expect(bytes.equals(fs.readFileSync(path.join(live, `${path.basename(name)}.log`))), name).toBe(true);
  expect(inodes()).toEqual(before);
  expect(fs.readFileSync(path.join(live, 'stdout.log.1')).equals(former)).toBe(true);
  const generations = (all: typeof rows) => all.map(({ file, generation }) => [file, generation]);
  expect(generations(engine.store.liveFiles.ofJob(JOB))).toEqual(generations(rows));
  // A job that was unwatched stays so.
  expect(engine.store.jobs.get('702' as JobId)?.state).toBe('ended');
});
