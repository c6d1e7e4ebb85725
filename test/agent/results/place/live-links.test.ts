import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { JobtailError } from '../../../../src/errors.ts';
import { SHIFT_CAPABILITY } from '../../../../src/live-paths.ts';
import { JOB, ResultsPlace, SECOND_TASK } from '../place.ts';

const MINUTE_MS = 60_000;

describe('a listed file that is a live file', () => {
  it('is a link again after a complete pass, or in another process, where the link is gone', async () => {
    const place = new ResultsPlace();
    place.live('stdout', 'hello\n').prove('/11/stdout.txt');
    place.remote.set('/11/stdout.txt', 'hello\n');
    await place.sync(true);
    const tree = ['11/stdout.txt -> ../../live/9001/stdout.log'];
    for (const [isFinal, isAnother] of [
      [true, false],
      [false, true],
    ] as const) {
      expect(place.tree()).toEqual(tree);
      fs.rmSync(place.path('11'), { recursive: true });
      if (isAnother) place.restarted();
      await place.sync(isFinal);
    }
    expect(place.tree()).toEqual(tree);
    expect(place.remote.downloads).toEqual([]);
  });

  it('is fetched once for the proof, and is a link to its mirror from then on', async () => {
    const place = new ResultsPlace();
    place.live('stdout', 'line 1\n');
    place.remote.set('/11/stdout.txt', 'line 1\nline 2\n');
    place.remote.set('/11/other', 'x');
    await place.sync();
    expect(place.tree()).toEqual(['11/other']);
    expect(place.row('/11/stdout.txt')).toMatchObject({
      state: 'listed',
      reason: expect.stringMatching(/^has the path of a live file, and waits for the proof/),
    });
    place.now += MINUTE_MS;
    await place.sync();
    expect(place.tree()).toEqual(['11/other', '11/stdout.txt -> ../../live/9001/stdout.log']);
    expect(place.row('/11/stdout.txt')).toMatchObject({ state: 'linked', live: '9001/stdout', reason: null });
    expect(place.store.resultSyncs.get(JOB)).toMatchObject({ wanted: 2, done: 2 });
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
    // No bytes prove nothing.
    place.live('log', '.');
    place.remote.set('/11/sub/log.txt', '');
    await place.sync(true);
    expect(place.tree()).toEqual([
      '11/stdout.txt -> ../../live/9001/stdout.log',
      '11/sub/log.txt',
      '11/sub/stdout.txt',
    ]);
    expect(place.read('11', 'sub', 'stdout.txt')).toBe('of a child\n');
  });

  it('is fetched at once with the others if its directory has not the number of a task', async () => {
    const place = new ResultsPlace();
    place.live('stdout', 'of the task\n');
    const names = ['/b/stdout.txt', '/c11/stdout.txt', '/11d/stdout.txt'];
    for (const name of names) place.remote.set(name, 'of no task\n');
    await place.sync();
    place.now += MINUTE_MS;
    await place.sync();
    expect(place.remote.downloads.toSorted()).toEqual(names.toSorted());
  });

  it('is one also while the service still lists less of it than its mirror has', async () => {
    const place = new ResultsPlace();
    place.live('stdout', 'line 1\nline 2\n');
    place.remote.set('/11/stdout.txt', 'line 1\n');
    await place.sync(true);
    expect(place.tree()).toEqual(['11/stdout.txt -> ../../live/9001/stdout.log']);
  });

  it('is reported from the one of another task by its content, and by what is proven beside it', async () => {
    const place = new ResultsPlace();
    place.live('stderr', '');
    place.live('stdout', 'one\n');
    place.live('stderr', '', { task: SECOND_TASK });
    place.live('stdout', 'two\n', { task: SECOND_TASK });
    for (const name of ['/11/stderr.txt', '/12/stderr.txt']) place.remote.set(name, '');
    place.remote.set('/11/stdout.txt', 'one\n');
    place.remote.set('/12/stdout.txt', 'two\n');
    await place.sync(true);
    expect(place.store.capabilities.get(SHIFT_CAPABILITY)).toBe('8990');
    expect(place.tree()).toEqual([
      '11/stderr.txt -> ../../live/9001/stderr.log',
      '11/stdout.txt -> ../../live/9001/stdout.log',
      '12/stderr.txt -> ../../live/9002/stderr.log',
      '12/stdout.txt -> ../../live/9002/stdout.log',
    ]);
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
});

it('a copy of a live file under the same name stays a file of its own, also in the sync that links the other one', async () => {
  const place = new ResultsPlace();
  place.live('stdout', 'live\n');
  for (const name of ['/11/stdout.txt', '/11/copy/stdout.txt']) place.remote.set(name, 'live\n');
  await place.sync(true);
  expect(place.tree()).toEqual(['11/copy/stdout.txt', '11/stdout.txt -> ../../live/9001/stdout.log']);
});
