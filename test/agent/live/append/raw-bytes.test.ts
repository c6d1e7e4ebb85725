import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { JobtailError } from '../../../../src/errors.ts';
import { keyText, type LiveFileKey, type TaskId } from '../../../../src/job.ts';
import { namesThatMayBe } from '../../../../src/live-paths.ts';
import { Engine, JOB, STDOUT } from '../../../support/engine.ts';
import { expectCases } from '../../../support/errors.ts';
import { ModelRemote } from '../../../support/model-remote.ts';
import { temporaryDirectory } from '../../../support/temp-directory.ts';
import { lived } from '../story.ts';

const OTHER: LiveFileKey = { taskId: '9002' as TaskId, file: 'stdout' };
const NAME = keyText(STDOUT);
/** Text, bytes that are none of UTF-8, and text. */
const BYTES = Buffer.from('text \xff\xfe and on\n', 'latin1');

function setUp() {
  const remote = new ModelRemote();
  let now = 1_000_000;
  const directory = temporaryDirectory();
  const engine = new Engine({ directory, remote, now: () => now });
  engine.watch([STDOUT]);
  onTestFinished(() => engine.kill());
  remote.prefix = 'x';
  remote.files.set(NAME, BYTES);
  const poll = async (isFinal = false) => {
    now += 1_000;
    const polled = await engine.poll(isFinal);
    return polled.outcomes.get(NAME) ?? polled.errors.get(NAME)?.code;
  };
  return { directory, remote, engine, poll, mirror: (key = STDOUT) => fs.readFileSync(engine.mirror(key), 'latin1') };
}

test('each poll of bytes that no text shows requests and appends what is written', async () => {
  await expectCases(path.join(import.meta.dirname, 'raw-bytes.txt'), lived);
});

describe('the listed names', () => {
  const listed = ['/9001/out/stdout.txt', '9002///stdout.txt', '/stdout.txt', '/9001/stdout.txt.bak', '/notstdout.txt'];

  test('that may be a live file end in its path, however they are written', async () => {
    expect(await namesThatMayBe(listed, '/stdout.txt')).toEqual(listed.slice(0, 3));
    expect(await namesThatMayBe(listed, 'out/stdout.txt')).toEqual(listed.slice(0, 1));
    expect(await namesThatMayBe(listed, null)).toEqual([]);
  });

  test('are requested only if the one that is known is not the file any more', async () => {
    const { remote, engine, poll, mirror } = setUp();
    let listings = 0;
    const list = remote.listChangedFiles.bind(remote);
    remote.listChangedFiles = async (...args) => {
      listings += 1;
      return await list(...args);
    };
    const downloaded: string[] = [];
    const download = remote.downloadFile.bind(remote);
    remote.downloadFile = async (jobId, name, ...more) => {
      downloaded.push(name);
      return await download(jobId, name, ...more);
    };
    expect(await poll(true)).toBe('current');
    expect({ listings, downloaded }).toEqual({ listings: 1, downloaded: [`/${NAME}.txt`, `/x${NAME}.txt`] });
    for (let more = 1; more < 5; more++) {
      remote.files.set(NAME, Buffer.concat([remote.files.get(NAME) ?? BYTES, BYTES]));
      expect(await poll(true)).toBe('current');
    }
    expect(mirror()).toBe(BYTES.toString('latin1').repeat(5));
    expect({ listings, downloads: downloaded.length }).toEqual({ listings: 1, downloads: 6 });

    // The known name is refused now, and the file is listed by another one.
    remote.downloadFile = async (jobId, name, ...more) => {
      downloaded.push(name);
      if (!name.startsWith('/moved/')) throw new JobtailError('not-found', 'no such file');
      return await download(jobId, `/${name.slice('/moved/'.length)}`, ...more);
    };
    remote.listChangedFiles = async (...args) => {
      listings += 1;
      return (await list(...args)).map((name) => `/moved${name}`);
    };
    remote.files.set(NAME, Buffer.concat([remote.files.get(NAME) ?? BYTES, BYTES]));
    expect(await poll(true)).toBe('current');
    expect(downloaded.slice(6)).toEqual([`/x${NAME}.txt`, `/${NAME}.txt`, `/moved/x${NAME}.txt`]);
    expect(listings).toBe(2);
    expect(engine.store.liveFiles.ofJob(JOB)[0]?.listedName).toBe(`/moved/x${NAME}.txt`);
  });
});

describe('the likely paths', () => {
  test('cost one download for each task, and what is certain comes before the first of them', async () => {
    const { remote, engine } = setUp();
    remote.prefix = '';
    const keys = Array.from({ length: 30 }, (_, task): LiveFileKey[] => {
      const taskId = String(9_100 + task) as TaskId;
      return [
        { taskId, file: 'stdout' },
        { taskId, file: 'stderr' },
      ];
    }).flat();
    engine.watch(keys);
    for (const key of keys)
      remote.files.set(
        keyText(key),
        Buffer.from(`${key.taskId}\n${key.file === 'stderr' ? 'a \xff\n' : 'good\n'}`, 'latin1'),
      );
    const download = remote.downloadFile.bind(remote);
    const downloaded: string[] = [];
    remote.downloadFile = async (jobId, name, ...more) => {
      const rows = engine.store.liveFiles
        .ofJob(JOB)
        .filter(({ file, taskId }) => file === 'stdout' && taskId !== '9001');
      expect(rows.every(({ position }) => position > 0)).toBe(true);
      downloaded.push(name);
      return await download(jobId, name, ...more);
    };
    await engine.poll();
    expect(downloaded.length).toBe(31);
    for (const key of keys) expect(fs.readFileSync(engine.mirror(key))).toEqual(remote.files.get(keyText(key)));
  });
});

describe('raw bytes', () => {
  test('that began a generation end the doubt with it: a later difference must be seen twice again', async () => {
    const { remote, engine, poll, mirror } = setUp();
    remote.prefix = '';
    const set = (text: string) => remote.files.set(NAME, Buffer.from(text, 'latin1'));
    const pollUntil = async (isDone: () => boolean) => {
      for (let polls = 0; polls < 20 && !isDone(); polls++) await poll();
      expect(isDone()).toBe(true);
    };
    const x = 'x'.repeat(600);
    set(`a${x}\xffabc`);
    expect(await poll()).toBe('current');
    // Only raw bytes show the rewrite.
    set(`b${x}\xffabcd`);
    await pollUntil(() => engine.mismatches.length === 1);
    // Text shows all of the next content, which has the length of the first one.
    const next = 'y'.repeat(605);
    set(next);
    await pollUntil(() => mirror() === next);
    const before = remote.rawBytes;
    set(`z${'y'.repeat(604)}\xff\n`);
    await pollUntil(() => remote.rawBytes > before);
    set(`${next}\xff\n`);
    await pollUntil(() => mirror() === `${next}\xff\n`);
    expect(engine.mismatches.map(([kind]) => kind)).toEqual(['rewritten']);
  });

  test('of an empty text are taken from an empty file of another task, which is not recorded as the source', async () => {
    const { remote, engine, poll } = setUp();
    remote.files.set(keyText(OTHER), Buffer.alloc(0));
    remote.files.set(NAME, Buffer.alloc(0));
    const list = remote.listChangedFiles.bind(remote);
    remote.listChangedFiles = async (...args) => {
      remote.files.set(NAME, BYTES);
      return await list(...args);
    };
    // The file grows between two requests.
    remote.decodeWith = (_, offset) => (offset === 0 ? '' : 'later');
    await poll(true);
    expect(engine.store.liveFiles.ofJob(JOB)[0]?.listedName).toBeNull();
    expect(engine.store.capabilities.get('task-shift')).toBeUndefined();
    const one = setUp();
    one.remote.files.set(NAME, Buffer.from([0xff]));
    expect(await one.poll()).toBe('current');
    expect(one.engine.store.liveFiles.ofJob(JOB)[0]?.listedName, 'of one byte').toBe(`/x${NAME}.txt`);
  });

  test('of listed files that differ are requested ever more rarely while the text fits several, and the error names that', async () => {
    const { remote, engine, poll } = setUp();
    const bytes = Buffer.concat([BYTES, Buffer.alloc(50_000, 'x')]);
    remote.files.set(keyText(OTHER), Buffer.concat([BYTES, bytes]));
    for (let polls = 0; polls < 120; polls++) {
      if (polls % 20 === 0) remote.files.set(NAME, Buffer.concat([BYTES, Buffer.alloc(polls, 'x')]));
      remote.files.set(keyText(OTHER), Buffer.concat([BYTES, Buffer.alloc(50_000, 'x')]));
      await poll();
    }
    expect(remote.rawBytes).toBeLessThan(8 * 51_000);
    expect(engine.store.liveFiles.ofJob(JOB)[0]?.error?.message).toContain('several listed files');
  });
});
