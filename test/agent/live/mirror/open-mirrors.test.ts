import fs from 'node:fs';
import path from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Mirror } from '../../../../src/agent/live/mirror/mirror.ts';
import { OpenMirrors } from '../../../../src/agent/live/mirror/open-mirrors.ts';
import type { JobId, LiveFileName } from '../../../../src/job.ts';
import { JOB, TASK } from '../../../support/engine.ts';
import { temporaryDirectory } from '../../../support/temp-directory.ts';
import { openFilesIn } from '../../../support/wire-files.ts';

let directory: string;
beforeEach(() => {
  directory = temporaryDirectory();
});

const mirrorsWith = (options: { readonly onNetwork?: boolean; readonly max?: number } = {}) =>
  new OpenMirrors({ directory, onNetwork: false, ...options });

async function poll(mirrors: OpenMirrors, file: LiveFileName, grew: boolean, jobId = JOB): Promise<Mirror> {
  const mirror = await mirrors.take(jobId, { taskId: TASK, file });
  await mirrors.giveBack(mirror, { grew });
  return mirror;
}

describe('a mirror', () => {
  test('that grew stays open for the next poll, and is closed by one that brings nothing', async () => {
    const mirrors = mirrorsWith();
    const mirror = await poll(mirrors, 'stdout', true);
    expect(openFilesIn(directory)).toBe(1);
    expect(await poll(mirrors, 'stdout', true)).toBe(mirror);
    expect(openFilesIn(directory)).toBe(1);
    await poll(mirrors, 'stdout', false);
    expect(openFilesIn(directory)).toBe(0);
  });

  test('beyond as many as may stay open is closed', async () => {
    const mirrors = mirrorsWith({ max: 2 });
    for (const file of ['stdout', 'stderr', 'log', 'progress'] as const) await poll(mirrors, file, true);
    expect(openFilesIn(directory)).toBe(2);
    // One that grows no more makes room.
    await poll(mirrors, 'stdout', false);
    await poll(mirrors, 'log', true);
    expect(openFilesIn(directory)).toBe(2);
    const taken = await mirrors.take(JOB, { taskId: TASK, file: 'log' });
    await mirrors.close();
    expect(openFilesIn(directory)).toBe(1);
    await mirrors.giveBack(taken, { grew: true });
    expect(openFilesIn(directory)).toBe(0);
  });

  test('of a job that is no longer followed is closed, and no other', async () => {
    const mirrors = mirrorsWith();
    await poll(mirrors, 'stdout', true);
    await poll(mirrors, 'stderr', true);
    await poll(mirrors, 'stdout', true, `${JOB}1` as JobId);
    await mirrors.closeJob(JOB);
    expect(openFilesIn(directory)).toBe(1);
    await mirrors.close();
    expect(openFilesIn(directory)).toBe(0);
  });

  test('on a network file system is opened at every poll', async () => {
    const mirrors = mirrorsWith({ onNetwork: true });
    await poll(mirrors, 'stdout', true);
    expect(openFilesIn(directory)).toBe(0);
  });
});

describe('a mirror that stays open', () => {
  const elsewhere = (file: string) => path.join(directory, `another-${path.basename(file)}`);
  test.each([
    ['deleted', (file: string) => fs.rmSync(file)],
    ['moved away', (file: string) => fs.renameSync(file, elsewhere(file))],
    [
      'replaced by a copy',
      (file: string) => {
        fs.copyFileSync(file, elsewhere(file));
        fs.renameSync(elsewhere(file), file);
      },
    ],
  ])('and was %s is opened anew', async (_, change) => {
    const mirrors = mirrorsWith();
    const before = await poll(mirrors, 'stdout', true);
    change(before.path);
    const after = await mirrors.take(JOB, { taskId: TASK, file: 'stdout' });
    await after.write(0, Buffer.from('text'));
    expect(fs.readFileSync(after.path, 'latin1')).toBe('text');
    await mirrors.giveBack(after, { grew: false });
    expect(openFilesIn(directory)).toBe(0);
  });

  const copied = (place: string, target: string) => {
    fs.cpSync(place, target, { recursive: true });
    fs.rmSync(place, { recursive: true });
  };
  test.each([
    ['it, to a copy', (file: string) => file, copied],
    ['it, to itself', (file: string) => file, fs.renameSync],
    ['its directory, to a copy', (file: string) => path.dirname(file), copied],
    ['its directory, to itself', (file: string) => path.dirname(file), fs.renameSync],
    ['the directory of its job, to itself', (file: string) => path.resolve(file, '../../..'), fs.renameSync],
  ])('is not followed through a link in the place of %s', async (_, placeOf, move) => {
    const mirrors = mirrorsWith();
    const { path: file } = await poll(mirrors, 'stdout', true);
    const place = placeOf(file);
    const target = elsewhere(place);
    move(place, target);
    fs.symlinkSync(target, place);
    await expect(mirrors.take(JOB, { taskId: TASK, file: 'stdout' })).rejects.toMatchObject({ code: 'local-io' });
    expect(openFilesIn(directory)).toBe(0);
  });
});
