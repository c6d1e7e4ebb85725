/** When a complete pass is at its end. The interface names no state of a job, so it is the pause that tells. */
import fs from 'node:fs';
import path from 'node:path';
import { beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { JobtailError } from '../../../src/errors.ts';
import { keyText, LIVE_FILE_NAMES, type LiveFileKey, type TaskId } from '../../../src/job.ts';
import type { Clock } from '../../../src/system/clock.ts';
import { Engine, JOB, STDOUT, TASK } from '../../support/engine.ts';
import { expectCases } from '../../support/errors.ts';
import { ModelRemote } from '../../support/model-remote.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';
import { lived } from '../live/story.ts';

const NAME = keyText(STDOUT);
const NO_LIVE_FILES = { tasks: [], files: [], settleAfterMs: null, source: 'command' } as const;

let remote: ModelRemote;
let engine: Engine;
let now: number;
/** How long each pause was, in milliseconds. */
let pauses: number[];

const clock: Clock = {
  now: () => now,
  monotonic: () => now,
  timer(delayMs, callback) {
    now += delayMs;
    pauses.push(delayMs);
    queueMicrotask(callback);
    return () => {};
  },
};

beforeEach(() => {
  remote = new ModelRemote();
  now = 1_000_000;
  pauses = [];
  engine = new Engine({ directory: temporaryDirectory(), remote, now: () => now });
  onTestFinished(() => engine.kill());
});

/** Called with the name of each download, before it; what it throws fails that. */
function beforeDownloads(before: (name: string) => void | Promise<void>): void {
  const download = remote.downloadFile.bind(remote);
  remote.downloadFile = async (job, name, ...more) => {
    await before(name);
    return await download(job, name, ...more);
  };
}

const notYet = () => new JobtailError('fault', 'not yet', { inPlace: 'nothing' });

it('each complete pass compares, waits and reports what is written', async () => {
  await expectCases(path.join(import.meta.dirname, 'complete-pass.txt'), lived);
});

it('the complete pass is not waited for where no live file is followed: the results are all there is', async () => {
  engine.store.jobs.watch({ ...NO_LIVE_FILES, jobId: JOB, results: true }, now);
  remote.files.set('result', Buffer.from('a result'));
  const summary = await engine.pass(clock);
  expect(summary).toMatchObject({ liveFiles: 0, verified: 0, results: { changed: 1, failed: 0 } });
  expect(pauses).toEqual([]);
  // The listing and the result.
  expect(remote.calls).toBe(2);
  // One that was not there when it was requested is requested after another listing.
  remote.files.set('late', Buffer.from('late'));
  let tries = 0;
  beforeDownloads((name) => {
    if (name === '/late.txt' && ++tries === 1) throw notYet();
  });
  expect(await engine.pass(clock)).toMatchObject({
    results: { listed: 2, fetched: 2, changed: 1, failed: 0, bytes: 12 },
  });
  // What the second listing has first, and is not there yet, is left to the syncs of a job that stays followed.
  remote.files.set('later', Buffer.from('later'));
  beforeDownloads((name) => {
    const isNew = name === '/later.txt' && !remote.files.has('new');
    if (isNew) remote.files.set('new', Buffer.from('new'));
    if (isNew || name === '/new.txt') throw notYet();
  });
  expect(await engine.pass(clock)).toMatchObject({ results: { listed: 4, failed: 0 } });
  expect(engine.store.results.counts(JOB)).toMatchObject({ queued: 1 });
  // No result is missing because of live files without bytes.
  remote.files.clear();
  expect(await engine.pass(clock)).toMatchObject({ results: { listed: 0 }, isListingEmpty: false });
  engine.watch([STDOUT]);
  expect(await engine.pass(clock)).toMatchObject({ verified: 1, isListingEmpty: false });
});

it('the complete pass fetches a result once more that changed since its last fetch, and proves it if no later pass does', async () => {
  engine.store.jobs.watch({ ...NO_LIVE_FILES, jobId: JOB, results: true }, now);
  for (const name of ['grown', 'same']) remote.files.set(name, Buffer.from('a'));
  await engine.pass(clock);
  const downloads: string[] = [];
  beforeDownloads((name) => void downloads.push(name));
  const growIn = async (isLast: boolean) => {
    const before = remote.files.get('grown') ?? Buffer.alloc(0);
    remote.files.set('grown', Buffer.concat([before, Buffer.from('b')]));
    const { results } = await engine.pass(clock, isLast);
    expect(results).toMatchObject({ listed: 2, fetched: downloads.length, changed: 1, failed: 0 });
    return [downloads.splice(0).length, engine.store.results.counts(JOB).inFlux];
  };
  expect(await growIn(false)).toEqual([2, 1]);
  expect(await growIn(true)).toEqual([3, 0]);
  // A settled job has no later pass either, unless a command requests it.
  engine.store.jobs.setState(JOB, 'settled');
  expect(await growIn(false)).toEqual([3, 0]);
  expect(engine.store.resultSyncs.get(JOB)).toMatchObject({ wanted: 2, done: 2 });
  // What goes on changing is not proven.
  const grow = () => {
    remote.files.set('grown', Buffer.from(`${remote.files.get('grown')}c`));
    remote.files.set('new', Buffer.from('n'));
  };
  const download = remote.downloadFile.bind(remote);
  remote.downloadFile = async (job, name, sink, signal) => {
    if (name === '/new.txt') throw notYet();
    return await download(job, name, sink, signal).finally(grow);
  };
  grow();
  remote.files.delete('new');
  const { results } = await engine.pass(clock, true);
  // Nor is what is listed only then, and is not there yet.
  expect(engine.store.results.counts(JOB)).toMatchObject({ synced: 2, inFlux: 1, queued: 1 });
  // The command that requested it must not report success.
  expect(results).toMatchObject({ failed: 2 });
});

it.each(['http-status', 'timeout'] as const)(
  'the complete pass keeps what is proven of the others when a download fails, says so, and fetches the results: %s',
  async (code) => {
    const tasks = ['9001', '9002', '9003'].map((taskId): LiveFileKey => ({ taskId: taskId as TaskId, file: 'stdout' }));
    engine.watch(tasks);
    engine.store.jobs.watch({ ...NO_LIVE_FILES, jobId: JOB, results: true }, now);
    for (const key of tasks) remote.files.set(keyText(key), Buffer.from(`task ${key.taskId}\n`));
    const reason = 'the service answers 500';
    let isFailing = true;
    beforeDownloads((name) => {
      if (isFailing && name.includes('9002')) throw new JobtailError(code, reason);
    });
    expect(await engine.pass(clock)).toMatchObject({ verified: 2, openEnds: [{ taskId: '9002', reason }] });
    expect(engine.store.liveFiles.ofJob(JOB).map(({ verified }) => verified)).toEqual([10, null, 10]);
    remote.files.set('out', Buffer.from('the last state\n'));
    // The last pass is made again for what may still come.
    const last = engine.pass(clock, true);
    if (code === 'timeout') await expect(last).rejects.toMatchObject({ code, message: reason });
    else expect(await last).toMatchObject({ verified: 2, openEnds: [{ taskId: '9002', reason }] });
    expect(engine.store.results.get(JOB, '/out.txt')).toMatchObject({ state: 'synced', bytes: 15 });
    isFailing = false;
    expect(await engine.pass(clock)).toMatchObject({ verified: 3, openEnds: [] });
  },
);

it('the complete pass of a job that stays followed fails where a mirror cannot be written', async () => {
  engine.watch([STDOUT]);
  remote.files.set(NAME, Buffer.from('one\n'));
  const mirror = engine.mirror(STDOUT);
  fs.mkdirSync(path.dirname(mirror), { recursive: true });
  fs.symlinkSync('/nowhere', mirror);
  await expect(engine.pass(clock)).rejects.toMatchObject({ code: 'local-io' });
});

it('a pass in which nothing is new lists once, and compares live files beside each other', async () => {
  const other: LiveFileKey = { taskId: '9002' as TaskId, file: 'stdout' };
  const keys = [...LIVE_FILE_NAMES.map((file) => ({ taskId: TASK, file })), other];
  engine.watch(keys);
  for (const key of keys) remote.files.set(keyText(key), Buffer.from('.'));
  remote.files.set('9001/out', Buffer.from('a result\n'));
  engine.store.jobs.watch({ ...NO_LIVE_FILES, jobId: JOB, results: true }, now);
  await engine.pass(clock);
  const order: string[] = [];
  let begun = 0;
  for (const call of ['readParts', 'listChangedFiles', 'downloadFile'] as const) {
    const made = remote[call].bind(remote) as (...of: unknown[]) => Promise<unknown>;
    const counted = async (...of: unknown[]) => {
      order.push(call);
      begun += Number(call === 'downloadFile');
      // Answers come in any order on a busy machine.
      if (call === 'downloadFile') await vi.waitUntil(() => begun >= 4);
      return await made(...of).finally(() => order.push('answer'));
    };
    Object.assign(remote, { [call]: counted });
  }
  const onCompared = () => void order.push('compared');
  const expected = { verified: 5, openEnds: [], results: { listed: 6, failed: 0 }, isListingEmpty: false };
  expect(await engine.pass(clock, false, { onCompared })).toMatchObject(expected);
  const [download, answer] = ['downloadFile', 'answer'];
  expect(order).toEqual([
    ...['readParts', answer, 'listChangedFiles', answer],
    ...Array(4).fill(download),
    ...Array(4).fill(answer),
    ...[download, answer],
    ...['compared', download, answer],
  ]);
  remote.listChangedFiles = async () => [];
  expect(await engine.pass(clock)).toMatchObject({ results: { listed: 0 }, isListingEmpty: true });
});
