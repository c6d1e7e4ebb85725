import fs from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { namesThatMayBe } from '../../../../src/agent/live/append/raw-bytes.ts';
import { JobtailError } from '../../../../src/errors.ts';
import { keyText, type LiveFileKey, type TaskId } from '../../../../src/job.ts';
import { Engine, JOB, STDOUT } from '../../../support/engine.ts';
import { ModelRemote } from '../../../support/model-remote.ts';
import { temporaryDirectory } from '../../../support/temp-directory.ts';

const OTHER: LiveFileKey = { taskId: '9002' as TaskId, file: 'stdout' };
const NAME = keyText(STDOUT);
/** Text, bytes that are none of UTF-8, and text. */
const BYTES = Buffer.from('text \xff\xfe and on\n', 'latin1');

function setUp() {
  const remote = new ModelRemote();
  let now = 1_000_000;
  const engine = new Engine({ directory: temporaryDirectory(), remote, now: () => now });
  engine.watch([STDOUT]);
  onTestFinished(() => engine.kill());
  remote.files.set(NAME, BYTES);
  const poll = async (final = false) => {
    now += 1_000;
    const polled = await engine.poll(final);
    return polled.ends.get(NAME) ?? polled.errors.get(NAME)?.code;
  };
  return { remote, engine, poll, mirror: (key = STDOUT) => fs.readFileSync(engine.mirror(key), 'latin1') };
}

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
    expect({ listings, downloaded }).toEqual({ listings: 1, downloaded: [`/${NAME}.txt`] });
    for (let more = 1; more < 5; more++) {
      remote.files.set(NAME, Buffer.concat([remote.files.get(NAME) ?? BYTES, BYTES]));
      expect(await poll(true)).toBe('current');
    }
    expect(mirror()).toBe(BYTES.toString('latin1').repeat(5));
    expect({ listings, downloads: downloaded.length }).toEqual({ listings: 1, downloads: 5 });

    // The known name is refused now, and the file is listed by another one.
    remote.downloadFile = async (jobId, name, ...more) => {
      downloaded.push(name);
      if (name === `/${NAME}.txt`) throw new JobtailError('not-found', 'no such file');
      return await download(jobId, `/${name.slice('/moved/'.length)}`, ...more);
    };
    remote.listChangedFiles = async (...args) => {
      listings += 1;
      return (await list(...args)).map((name) => `/moved${name}`);
    };
    remote.files.set(NAME, Buffer.concat([remote.files.get(NAME) ?? BYTES, BYTES]));
    expect(await poll(true)).toBe('current');
    expect(downloaded.slice(5)).toEqual([`/${NAME}.txt`, `/moved/${NAME}.txt`]);
    expect(listings).toBe(2);
    expect(engine.store.liveFiles.ofJob(JOB)[0]?.listedName).toBe(`/moved/${NAME}.txt`);
  });
});

describe('raw bytes', () => {
  test('stand for what the text cannot say, and the name is kept', async () => {
    const { engine, poll, mirror } = setUp();
    expect(await poll()).toBe('current');
    expect(mirror()).toBe(BYTES.toString('latin1'));
    expect(engine.store.liveFiles.ofJob(JOB)[0]?.listedName).toBe(`/${NAME}.txt`);
  });

  test('are taken only from a file of which the mirror is the beginning, and which the text fits', async () => {
    for (const other of ['another text \xff\xfe and on\n', 'text \xff\xfe but on\n', 'text', '']) {
      const { remote, poll, mirror } = setUp();
      remote.listChangedFiles = async () => [`/${keyText(OTHER)}.txt`];
      remote.files.set(keyText(OTHER), Buffer.from(other, 'latin1'));
      expect(await poll()).toBe('raw');
      expect(mirror()).toBe('text ');
    }
  });

  test('of two files that both fit are taken as far as they agree', async () => {
    const { remote, engine, poll, mirror } = setUp();
    remote.files.set(keyText(OTHER), Buffer.concat([BYTES, Buffer.from('of the other task')]));
    expect(await poll()).toBe('current');
    expect(mirror()).toBe(BYTES.toString('latin1'));
    expect(engine.store.liveFiles.ofJob(JOB)[0]?.listedName).toBeNull();
  });

  test('of two files that differ where the text says nothing are taken up to there', async () => {
    const { remote, poll, mirror } = setUp();
    remote.files.set(keyText(OTHER), Buffer.from('text \xff\xfd and on\n', 'latin1'));
    await poll();
    expect(mirror()).toBe('text \xff');
  });

  test('are not asked for again and again: a file is fetched once a second, a large one later', async () => {
    const { remote, engine, poll } = setUp();
    const large = Buffer.concat([Buffer.alloc(1024 * 1024, 'x'), BYTES]);
    remote.files.set(NAME, large);
    expect(await poll()).toBe('current');
    let fetched = remote.rawBytes;
    remote.files.set(NAME, Buffer.concat([large, BYTES]));
    // Five seconds for a mebibyte: the first polls find that it is not time.
    for (const time of [1, 2, 3]) expect([time, await poll(), remote.rawBytes]).toEqual([time, 'raw', fetched]);
    for (let polls = 0; polls < 4; polls++) await poll();
    expect(remote.rawBytes).toBeGreaterThan(fetched);
    expect(engine.store.liveFiles.ofJob(JOB)[0]?.position).toBe(large.length + BYTES.length);
    // A final pass does not wait.
    fetched = remote.rawBytes;
    remote.files.set(NAME, Buffer.concat([large, BYTES, BYTES]));
    expect(await poll(true)).toBe('current');
  });

  test('that are refused twice are given up for now; a call that fails says nothing of them', async () => {
    const { remote, poll, mirror } = setUp();
    remote.downloadFile = async () => {
      throw new JobtailError('timeout', 'no answer');
    };
    for (let polls = 0; polls < 5; polls++) expect(await poll()).toBe('timeout');
    expect(mirror()).toBe('text ');
    remote.downloadFile = async () => {
      throw new JobtailError('not-found', 'no such file');
    };
    const ends: unknown[] = [];
    for (let polls = 0; polls < 12; polls++) ends.push(await poll());
    // A file that failed waits longer each time before it is asked for.
    expect(ends.filter((end) => end !== 'timeout')[0]).toBe('raw');
    expect(mirror()).toBe('text ?? and on\n');
  });
});
