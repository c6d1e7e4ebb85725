import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { JobtailError } from '../../../../src/errors.ts';
import type { TaskId } from '../../../../src/job.ts';
import { jobOf } from '../../../support/model-job-service.ts';
import { JOB, ResultsPlace, SECOND_TASK } from '../place.ts';

const MINUTE_MS = 60_000;

describe('a listed file that is a live file', () => {
  it('is fetched once for the proof, and is a link to its mirror from then on', async () => {
    const place = new ResultsPlace();
    place.live('stdout', 'line 1\n');
    place.remote.set('/11/stdout.txt', 'line 1\nline 2\n');
    place.remote.set('/11/other', 'x');
    await place.sync();
    expect(place.tree()).toEqual(['11/other']);
    expect(place.row('/11/stdout.txt')).toMatchObject({
      state: 'listed',
      reason: 'waits for the proof that it is the live file 9001/stdout',
    });
    place.now += MINUTE_MS;
    await place.sync();
    expect(place.tree()).toEqual(['11/other', '11/stdout.txt -> ../../live/9001/stdout.log']);
    expect(place.row('/11/stdout.txt')).toMatchObject({ state: 'linked', live: '9001/stdout', reason: null });
    expect(place.read('11', 'stdout.txt')).toBe('line 1\n');
    for (let minute = 0; minute < 100; minute++) {
      place.now += MINUTE_MS;
      await place.sync();
    }
    expect(place.remote.downloads.filter((name) => name === '/11/stdout.txt')).toHaveLength(1);
  });

  it('is not fetched at all where its raw bytes were proven already', async () => {
    const place = new ResultsPlace();
    place.live('stdout', 'line 1\n', { listedName: '/11/stdout.txt' });
    place.live('stderr', '').prove('/11/stderr.txt');
    place.remote.set('/11/stdout.txt', 'line 1\nline 2\n');
    place.remote.set('/11/stderr.txt', '');
    await place.sync();
    expect(place.tree()).toEqual([
      '11/stderr.txt -> ../../live/9001/stderr.log',
      '11/stdout.txt -> ../../live/9001/stdout.log',
    ]);
    expect(place.remote.downloads).toEqual([]);
  });

  it('is an ordinary result if only its name is the same', async () => {
    const place = new ResultsPlace();
    place.live('stdout', 'of the task\n');
    place.remote.set('/11/sub/stdout.txt', 'of a child\n');
    place.remote.set('/11/stdout.txt', 'of the task\n');
    await place.sync(true);
    expect(place.tree()).toEqual(['11/stdout.txt -> ../../live/9001/stdout.log', '11/sub/stdout.txt']);
    expect(place.read('11', 'sub', 'stdout.txt')).toBe('of a child\n');
  });

  it('is reported from the one of another task by its content, and by what is proven beside it', async () => {
    const place = new ResultsPlace();
    place.live('stderr', '');
    place.live('stdout', 'one\n');
    place.live('stderr', '', { task: SECOND_TASK });
    place.live('stdout', 'two\n', { task: SECOND_TASK });
    for (const name of ['/11/stderr.txt', '/12/stderr.txt']) place.remote.set(name, '');
    place.remote.set('/12/stdout.txt', 'one\n');
    place.remote.set('/11/stdout.txt', 'two\n');
    await place.sync(true);
    expect(place.tree()).toEqual([
      '11/stderr.txt -> ../../live/9002/stderr.log',
      '11/stdout.txt -> ../../live/9002/stdout.log',
      '12/stderr.txt -> ../../live/9001/stderr.log',
      '12/stdout.txt -> ../../live/9001/stdout.log',
    ]);
  });

  it('of several tasks waits for the proof of all that it could be, not of the first', async () => {
    const place = new ResultsPlace();
    place.live('stdout', 'one\n');
    const waiting = async (...tasks: string[]) => {
      for (const task of tasks) place.live('stdout', `of ${task}\n`, { task: task as TaskId });
      const name = `/${tasks.length}/stdout.txt`;
      place.remote.set(name, 'two\n');
      await place.sync();
      return place.row(name)?.reason;
    };
    expect(await waiting(SECOND_TASK)).toBe('waits for the proof which live file it is: 9001/stdout, 9002/stdout');
    expect(await waiting('9003', '9004')).toBe(
      'waits for the proof which live file it is: 9001/stdout, 9002/stdout, 9003/stdout, and 1 more',
    );
  });

  it('is an ordinary result while two tasks wrote the same', async () => {
    const place = new ResultsPlace();
    place.live('stdout', 'same\n');
    place.live('stdout', 'same\n', { task: SECOND_TASK });
    place.remote.set('/11/stdout.txt', 'same\n');
    place.remote.set('/12/stdout.txt', 'same\n');
    await place.sync(true);
    expect(place.tree()).toEqual(['11/stdout.txt', '12/stdout.txt']);
  });

  it('becomes a file again if the final pass finds that it is not the live file', async () => {
    const place = new ResultsPlace();
    const live = place.live('stdout', 'so far the same');
    place.remote.set('/11/stdout.txt', 'so far the same');
    await place.sync(true);
    expect(place.row('/11/stdout.txt')?.state).toBe('linked');
    place.remote.set('/11/stdout.txt', 'so far the same, then not');
    fs.appendFileSync(live.mirror, ': another');
    live.prove('/12/stdout.txt');
    await place.sync(true);
    expect(place.tree()).toEqual(['11/stdout.txt']);
    expect(place.read('11', 'stdout.txt')).toBe('so far the same, then not');
    expect(fs.readFileSync(live.mirror, 'utf8')).toBe('so far the same: another');
    expect(place.row('/11/stdout.txt')).toMatchObject({ state: 'synced', live: null });
  });

  it('is a link again when it is proven again, after it could not be fetched for the proof', async () => {
    const place = new ResultsPlace();
    place.live('stdout', 'text');
    place.remote.set('/11/stdout.txt', 'text');
    await place.sync(true);
    place.remote.files.set('/11/stdout.txt', new JobtailError('fault', 'refused'));
    await place.sync(true);
    expect(place.row('/11/stdout.txt')).toMatchObject({ state: 'failed', reason: 'refused' });
    place.remote.set('/11/stdout.txt', 'text');
    place.live('stdout', 'text').prove('/11/stdout.txt');
    await place.sync(true);
    expect(place.row('/11/stdout.txt')).toMatchObject({ state: 'linked', reason: null });
    expect(place.tree()).toEqual(['11/stdout.txt -> ../../live/9001/stdout.log']);
  });

  it('is not fetched as a result in the first seconds, before the path of a live file is known', async () => {
    const place = new ResultsPlace();
    place.live('stdout', '', { relativePath: null });
    place.remote.set('/11/stdout.txt', 'one\n');
    expect(await place.sync()).toMatchObject({ fetched: 0, failed: 0 });
    expect(place.row('/11/stdout.txt')).toMatchObject({
      state: 'listed',
      reason: 'waits until the live files of the job are known',
    });
    // The first poll found it, and where its raw bytes are listed.
    place.live('stdout', 'one\n', { listedName: '/11/stdout.txt' });
    place.now += 60_000;
    await place.sync();
    expect(place.tree()).toEqual(['11/stdout.txt -> ../../live/9001/stdout.log']);
    expect(place.remote.downloads).toEqual([]);
  });

  it('delays no other result once one of them is known, or after some seconds', async () => {
    const place = new ResultsPlace();
    place.live('stdout', '', { relativePath: null });
    place.live('log', '', { relativePath: null });
    place.remote.set('/11/new.dat', 'x');
    expect(await place.sync()).toMatchObject({ fetched: 0 });
    place.live('stdout', 'one\n');
    place.now += 1;
    expect(await place.sync()).toMatchObject({ fetched: 1 });
    place.live('stdout', '', { relativePath: null });
    place.remote.set('/11/newer.dat', 'x');
    expect(await place.sync()).toMatchObject({ fetched: 0 });
    place.now += 4_000;
    expect(await place.sync()).toMatchObject({ fetched: 1 });
  });

  it.each(['searched', 'over'] as const)('whose tasks are %s in the first seconds', async (which) => {
    const place = new ResultsPlace();
    const order = { jobId: JOB, tasks: null, files: ['stdout'], results: true, settleAfterMs: null } as const;
    place.store.jobs.watch({ ...order, source: 'command' }, place.now);
    const [since, reportedAt] = [place.now, place.now];
    if (which === 'over')
      place.store.jobInformation.save({ jobId: JOB, information: jobOf(JOB, 'Finished'), since, reportedAt });
    place.remote.set('/11/stdout.txt', 'one\n');
    expect(await place.sync()).toMatchObject({ fetched: which === 'over' ? 1 : 0 });
    expect(await place.sync(true)).toMatchObject({ fetched: 1 });
  });
});
