import fs from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { JobtailError } from '../../../../src/errors.ts';
import { keyText, type LiveFileKey, type TaskId } from '../../../../src/job.ts';
import { namesThatMayBe, SHIFT_CAPABILITY } from '../../../../src/live-paths.ts';
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
  test('bring a file that the service never lists, in one download', async () => {
    const { remote, poll, mirror } = setUp();
    remote.prefix = '';
    remote.listChangedFiles = async () => [];
    const burst = Buffer.from('Schritt 1: Gr\xf6\xdfe \xe4ndert sich, \xfcber 20 \xb0C\n'.repeat(800), 'latin1');
    remote.files.set(NAME, burst);
    const before = remote.calls;
    expect(await poll()).toBe('current');
    expect(mirror()).toBe(burst.toString('latin1'));
    // The text, that from another offset, the raw bytes.
    expect(remote.calls - before).toBeLessThanOrEqual(4);
    expect(remote.rawBytes).toBe(burst.length);
  });

  test('that lead to another file first do not make the mirror differ from the right one', async () => {
    const { directory, remote, engine, poll, mirror } = setUp();
    remote.prefix = '';
    remote.listChangedFiles = async () => [];
    expect(await poll()).toBe('current');
    engine.store.capabilities.set(SHIFT_CAPABILITY, '1');
    remote.files.set('9000/stdout', Buffer.from('another file\n'.repeat(50)));
    remote.files.set(NAME, Buffer.concat([BYTES, BYTES]));
    engine.kill();
    const next = new Engine({ directory, remote, now: () => 2_000_000 });
    onTestFinished(() => next.kill());
    expect((await next.poll()).outcomes.get(NAME)).toBe('current');
    expect(mirror()).toBe(BYTES.toString('latin1').repeat(2));
  });

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
  test('are taken only from a file of which the mirror is the beginning, and which the text fits', async () => {
    for (const other of ['another text \xff\xfe and on\n', 'text \xff\xfe but on\n', 'text', '']) {
      const { remote, poll, mirror } = setUp();
      remote.listChangedFiles = async () => [`/x${keyText(OTHER)}.txt`];
      remote.files.set(keyText(OTHER), Buffer.from(other, 'latin1'));
      expect(await poll()).toBe('raw-unavailable');
      expect(mirror()).toBe('text ');
    }
  });

  test('show a rewrite that the text does not: before the overlap, or behind U+FFFD', async () => {
    for (const [before, after] of [
      ['\xaf\nA\n', 'A\nA\n\xaf\n'],
      [`a${'x'.repeat(600)}`, `b${'x'.repeat(600)}\xff\n`],
      ['A \xfe B\n', 'A \xff B\n\xff\n'],
    ] as const) {
      const { remote, poll, mirror } = setUp();
      remote.prefix = '';
      remote.files.set(NAME, Buffer.from(before, 'latin1'));
      expect(await poll()).toBe('current');
      remote.files.set(NAME, Buffer.from(after, 'latin1'));
      for (let polls = 0; polls < 20 && mirror() !== after; polls++) await poll();
      expect(mirror()).toBe(after);
    }
  });

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

  test('that were compared before end the doubt of a stale size: a second one waits as long', async () => {
    const { remote, engine, poll, mirror } = setUp();
    const bytes = Buffer.from(`${'x'.repeat(200)}\xffabc`, 'latin1');
    remote.files.set(NAME, bytes);
    expect(await poll()).toBe('current');
    for (const seen of [50, bytes.length, bytes.length, 50]) {
      remote.staleSizes.set(NAME, seen);
      for (let polls = 0; polls < 4; polls++) await poll();
    }
    expect(engine.mismatches).toEqual([]);
    expect(mirror()).toBe(bytes.toString('latin1'));
  });

  test('that were compared before end the doubt of another text: it must be seen twice again', async () => {
    const { remote, engine, poll, mirror } = setUp();
    const contents = [`${'x'.repeat(200)}\xffabc`, `${'y'.repeat(200)}\xffabc`];
    for (const index of [0, 1, 0, 1, 0]) {
      remote.files.set(NAME, Buffer.from(`${contents[index]}`, 'latin1'));
      expect(await poll()).toBe(index === 0 ? 'current' : 'changing');
    }
    expect(engine.mismatches).toEqual([]);
    expect(mirror()).toBe(contents[0]);
  });

  test('that are refused prove no stale size: a text with more bytes than it ends the doubt', async () => {
    const { remote, engine, poll } = setUp();
    const bytes = Buffer.from(`${'x'.repeat(200)}\xffabc`, 'latin1');
    remote.files.set(NAME, bytes);
    expect(await poll()).toBe('current');
    remote.rawAccess = false;
    for (const seen of [50, 205, 50]) {
      remote.files.set(NAME, Buffer.concat([bytes, Buffer.from('d')]));
      remote.staleSizes.set(NAME, seen);
      for (let polls = 0; polls < 4; polls++) expect(await poll()).toBe(seen === 50 ? 'changing' : 'raw-unavailable');
    }
    expect(engine.mismatches).toEqual([]);
  });

  test('that were refused since are compared again, though the text is as before', async () => {
    const { remote, poll, mirror } = setUp();
    for (const [text, rawAccess, end] of [
      ['text \xfe\n', true, 'current'],
      ['text \xfe\n\xfe\n', false, 'raw-unavailable'],
      ['text \xff\n', true, 'current'],
    ] as const) {
      remote.rawAccess = rawAccess;
      remote.files.set(NAME, Buffer.from(text, 'latin1'));
      for (let polls = 0; polls < 30; polls++) await poll();
      expect(await poll()).toBe(end);
    }
    expect(mirror()).toBe('text \xff\n');
  });

  test('of two listed files that both fit are taken if they are equal, whichever is the file', async () => {
    const { remote, engine, poll, mirror } = setUp();
    remote.files.set(keyText(OTHER), BYTES);
    expect(await poll()).toBe('current');
    expect(mirror()).toBe(BYTES.toString('latin1'));
    expect(engine.store.liveFiles.ofJob(JOB)[0]?.listedName).toBeNull();
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

  test('of two listed files that differ where the text shows nothing are not taken, nor replaced', async () => {
    const { remote, poll, mirror } = setUp();
    remote.files.set(keyText(OTHER), Buffer.from('text \xff\xfd and on\n', 'latin1'));
    for (let polls = 0; polls < 20; polls++) expect(await poll()).toBe('raw-unavailable');
    expect(mirror()).toBe('text ');
    remote.files.set(NAME, Buffer.concat([BYTES, Buffer.from('of this task')]));
    remote.files.set(keyText(OTHER), Buffer.from('text \xff\xfd and on\nanother one', 'latin1'));
    for (let polls = 0; polls < 20 && mirror() === 'text '; polls++) await poll();
    expect(mirror()).toBe(`${BYTES.toString('latin1')}of this task`);
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

  test('that are refused end the mirror before the first byte that is not shown, with the reason; a call that fails says nothing', async () => {
    const { remote, engine, poll, mirror } = setUp();
    remote.downloadFile = async () => {
      throw new JobtailError('timeout', 'no answer');
    };
    for (let polls = 0; polls < 5; polls++) expect(await poll()).toBe('timeout');
    expect(mirror()).toBe('text ');
    remote.downloadFile = async () => {
      throw new JobtailError('not-found', 'no such file', { hint: 'the job is not submitted' });
    };
    const ends: unknown[] = [];
    for (let polls = 0; polls < 12; polls++) ends.push(await poll());
    // A file that failed waits longer each time before it is asked for.
    expect(ends.filter((end) => end !== 'timeout')[0]).toBe('raw-unavailable');
    expect(mirror()).toBe('text ');
    for (let polls = 0; polls < 60; polls++) await poll();
    expect(engine.store.liveFiles.ofJob(JOB)[0]?.error?.message).toBe(
      'the mirror ends at byte 5: the service does not show what follows, and there are no raw bytes: no such file: the job is not submitted',
    );
  });
});
