import fs from 'node:fs';
import { expect, test } from 'vitest';
import { keyText, type LiveFileKey, type TaskId } from '../../../../src/job.ts';
import { namesThatMayBe } from '../../../../src/live-paths.ts';
import { JOB, polledPlace, STDOUT } from '../../../support/engine.ts';

const OTHER: LiveFileKey = { taskId: '9002' as TaskId, file: 'stdout' };
const NAME = keyText(STDOUT);
/** Text, bytes that are none of UTF-8, and text. */
const BYTES = Buffer.from('text \xff\xfe and on\n', 'latin1');

function setUp() {
  const place = polledPlace();
  place.remote.prefix = 'x';
  place.remote.files.set(NAME, BYTES);
  return place;
}

test('the listed names that may be a live file end in its path, however they are written', async () => {
  const listed = ['/9001/out/stdout.txt', '9002///stdout.txt', '/stdout.txt', '/9001/stdout.txt.bak', '/notstdout.txt'];
  expect(await namesThatMayBe(listed, '/stdout.txt')).toEqual(listed.slice(0, 3));
  expect(await namesThatMayBe(listed, 'out/stdout.txt')).toEqual(listed.slice(0, 1));
  expect(await namesThatMayBe(listed, null)).toEqual([]);
});

test('the likely paths cost one download for each task, and what is certain comes before the first of them', async () => {
  const keys = Array.from({ length: 30 }, (_, task) => String(9_100 + task) as TaskId).flatMap(
    (taskId): LiveFileKey[] => [
      { taskId, file: 'stdout' },
      { taskId, file: 'stderr' },
    ],
  );
  const { remote, engine, poll } = polledPlace({ keys });
  for (const key of keys)
    remote.files.set(keyText(key), Buffer.from(`${key.taskId}\n${key.file === 'stderr' ? 'a \xff\n' : ''}`, 'latin1'));
  const download = remote.downloadFile.bind(remote);
  const downloaded: string[] = [];
  remote.downloadFile = async (...call) => {
    const rows = engine.store.liveFiles.ofJob(JOB).filter(({ file }) => file === 'stdout');
    expect(rows.every(({ position }) => position > 0)).toBe(true);
    downloaded.push(call[1]);
    return await download(...call);
  };
  await poll();
  expect(downloaded).toHaveLength(30);
  for (const key of keys) expect(fs.readFileSync(engine.mirror(key))).toEqual(remote.files.get(keyText(key)));
});

test('raw bytes of an empty text are taken from an empty file of another task, which is not recorded as the source', async () => {
  const { remote, engine, poll, row } = setUp();
  for (const key of [OTHER, STDOUT]) remote.files.set(keyText(key), Buffer.alloc(0));
  const list = remote.listChangedFiles.bind(remote);
  remote.listChangedFiles = async (...args) => {
    remote.files.set(NAME, BYTES);
    return await list(...args);
  };
  // The file grows between two requests.
  remote.decodeWith = (_, offset) => (offset === 0 ? '' : 'later');
  await poll(1_000, true);
  expect([row()?.listedName, engine.store.capabilities.get('task-shift')]).toEqual([null, undefined]);
  const one = setUp();
  one.remote.files.set(NAME, Buffer.from([0xff]));
  expect([await one.poll(), one.row()?.listedName]).toEqual(['current', `/x${NAME}.txt`]);
});
