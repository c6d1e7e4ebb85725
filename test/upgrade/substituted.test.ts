/** A mirror in which an older version wrote `?` in place of bytes is cut before the first of them, and becomes whole. */
import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import { keyText } from '../../src/job.ts';
import { Engine, JOB, STDOUT } from '../support/engine.ts';
import { ModelRemote } from '../support/model-remote.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';
import { putReleased } from './released-state.ts';

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
