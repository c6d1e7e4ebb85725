/** A long backlog of which the service could not decode all: its raw bytes are taken once, while they arrive. */
import fs from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { DirectBytes } from '../../../../src/agent/ports/transfer.ts';
import { JobtailError } from '../../../../src/errors.ts';
import { keyText, type LiveFileKey, type TaskId } from '../../../../src/job.ts';
import { Engine, JOB, STDOUT } from '../../../support/engine.ts';
import { ModelRemote } from '../../../support/model-remote.ts';
import { temporaryDirectory } from '../../../support/temp-directory.ts';

const NAME = keyText(STDOUT);
const STDERR: LiveFileKey = { ...STDOUT, file: 'stderr' };
const LONG_BYTES = 100_000;
/** Full of characters that block edges cut. */
const TEXT = Buffer.from(Array.from({ length: 20_000 }, (_, line) => `${line} 日本語のログ\n`).join(''));

function setUp(watched: readonly LiveFileKey[] = [STDOUT], direct?: DirectBytes) {
  const remote = new ModelRemote();
  let time = 1_000_000;
  const engine = new Engine({
    directory: temporaryDirectory(),
    remote,
    now: () => time,
    longBacklogBytes: LONG_BYTES,
    ...(direct && { direct }),
  });
  engine.watch(watched);
  engine.store.capabilities.set('text-encoding', 'utf-8');
  onTestFinished(() => engine.kill());
  remote.files.set(NAME, TEXT);
  const poll = async () => {
    time += 1_000;
    const polled = await engine.poll();
    expect(remote.held).toBe(0);
    return polled.outcomes.get(NAME) ?? polled.errors.get(NAME)?.code;
  };
  return { remote, engine, poll, mirror: () => fs.readFileSync(engine.mirror(STDOUT)) };
}

describe('a long backlog full of cut characters', () => {
  test('costs the beginning of its text and its raw bytes', async () => {
    const { remote, engine, poll, mirror } = setUp();
    expect(await poll()).toBe('current');
    expect(mirror().equals(TEXT)).toBe(true);
    // Its beginning, its name, the file.
    expect(remote.calls).toBe(3);
    expect(remote.textBytes).toBeLessThan(1.1 * LONG_BYTES);
    expect(remote.rawBytes).toBe(TEXT.length);
    expect(engine.store.liveFiles.ofJob(JOB)[0]).toMatchObject({ position: TEXT.length });
    remote.files.set(NAME, Buffer.concat([TEXT, Buffer.from('více\n')]));
    expect(await poll()).toBe('current');
    expect(remote.calls).toBe(4);
    expect(mirror().equals(Buffer.concat([TEXT, Buffer.from('více\n')]))).toBe(true);
  });

  test('is requested as text three times where raw bytes are refused', async () => {
    const { remote, poll, mirror } = setUp();
    remote.rawAccess = false;
    expect(await poll()).toBe('raw-unavailable');
    expect(mirror().length).toBe(0);
    remote.textBytes = 0;
    expect(await poll()).toBe('current');
    expect(mirror().equals(TEXT)).toBe(true);
    expect(remote.textBytes).toBeLessThan(TEXT.length * 3.01);
    // Once raw bytes came, a later one is not.
    remote.rawAccess = true;
    const hidden = Buffer.from('\xff\n', 'latin1');
    for (const bytes of [Buffer.concat([TEXT, hidden]), Buffer.concat([hidden, TEXT])]) {
      remote.files.set(NAME, bytes);
      remote.textBytes = 0;
      for (let polls = 0; polls < 20 && !mirror().equals(bytes); polls++) await poll();
      expect(mirror().equals(bytes)).toBe(true);
    }
    expect(remote.textBytes).toBeLessThan(TEXT.length);
  });

  test('is not read as text after a call that failed', async () => {
    const { remote, poll, mirror } = setUp();
    const download = remote.downloadFile.bind(remote);
    remote.downloadFile = async () => {
      throw new JobtailError('unreachable', 'no route');
    };
    expect(await poll()).toBe('unreachable');
    remote.downloadFile = download;
    remote.textBytes = 0;
    expect(await poll()).toBe('current');
    expect(mirror().equals(TEXT)).toBe(true);
    expect(remote.textBytes).toBeLessThan(1.1 * LONG_BYTES);
  });

  test('is not taken for one where another process changed the mirror: its whole text is compared', async () => {
    const { remote, engine, poll, mirror } = setUp();
    expect(await poll()).toBe('current');
    const changed = Buffer.from(TEXT).fill('#', TEXT.length - 9_000, TEXT.length - 8_990);
    fs.writeFileSync(engine.mirror(STDOUT), changed);
    remote.textBytes = 0;
    expect(await poll()).toBe('current');
    expect(mirror().equals(TEXT)).toBe(true);
    expect(remote.textBytes).toBeGreaterThan(TEXT.length);
    expect(remote.rawBytes).toBe(TEXT.length);
  });

  test('is read as text where the service fails to send its raw bytes', async () => {
    const { remote, poll, mirror } = setUp();
    remote.downloadFile = async () => {
      throw new JobtailError('http-status', 'status 500');
    };
    expect(await poll()).toBe('http-status');
    for (let polls = 0; polls < 5 && mirror().length < TEXT.length; polls++) await poll();
    expect(mirror().equals(TEXT)).toBe(true);
  });

  test('goes on where it was when the download breaks in its midst', async () => {
    const { remote, engine, poll, mirror } = setUp();
    const download = remote.downloadFile.bind(remote);
    remote.downloadFile = async (jobId, path, sink, signal) => {
      let bytes = 0;
      const broken = new JobtailError('interrupted', 'the connection broke');
      await download(
        jobId,
        path,
        async (piece) => {
          bytes += piece.length;
          if (bytes > 2_000_000) throw broken;
          await sink(piece);
        },
        signal,
      );
      return bytes;
    };
    const long = Buffer.concat(Array.from({ length: 8 }, () => TEXT));
    remote.files.set(NAME, long);
    expect(await poll()).toBe('interrupted');
    const came = mirror();
    expect(came.length).toBeGreaterThan(1_900_000);
    expect(came.equals(long.subarray(0, came.length))).toBe(true);
    remote.downloadFile = download;
    for (let polls = 0; polls < 2; polls++) await poll();
    expect(mirror().equals(long)).toBe(true);
    expect(engine.store.liveFiles.ofJob(JOB)[0]).toMatchObject({ generation: 1, error: null });
  });

  test('comes raw beside other files of its job, which are asked for by themselves then', async () => {
    const { remote, poll, mirror } = setUp([STDOUT, STDERR]);
    remote.files.set(keyText(STDERR), Buffer.from('an error\n'));
    expect(await poll()).toBe('current');
    expect(mirror().equals(TEXT)).toBe(true);
    expect(remote.rawBytes).toBe(TEXT.length);
    expect(remote.textBytes).toBeLessThan(2.2 * LONG_BYTES);
    const before = remote.calls;
    expect(await poll()).toBe('current');
    expect(remote.calls).toBe(before + 1);
  });
});

describe('a text that the service cannot send', () => {
  const GROWN = Buffer.concat([TEXT, TEXT, Buffer.from('one more line, více\n')]);

  test.each([
    ['of one file', [STDOUT]],
    ['of one among others', [STDOUT, STDERR]],
  ])('%s: the file comes raw, at the first poll', async (_, watched) => {
    const { remote, engine, poll, mirror } = setUp(watched);
    remote.maxTextBytes = TEXT.length / 2;
    if (watched.length > 1) remote.files.set(keyText(STDERR), Buffer.from('an error\n'));
    expect(await poll()).toBe('current');
    expect(mirror().equals(TEXT)).toBe(true);
    // Once to find its end, whose text proves the second download.
    expect(remote.rawBytes).toBe(2 * TEXT.length);
    expect(remote.textBytes).toBeLessThan(LONG_BYTES);
    const before = remote.calls;
    remote.files.set(NAME, Buffer.concat([TEXT, Buffer.from('více\n')]));
    expect(await poll()).toBe('current');
    expect(remote.calls).toBe(before + 1);
    expect(engine.store.liveFiles.ofJob(JOB)[0]).toMatchObject({ generation: 1, error: null });
  });

  test('is appended while its raw bytes arrive, so that no memory has to hold them', async () => {
    const { remote, poll, mirror } = setUp();
    const lengths: number[] = [];
    remote.maxTextBytes = TEXT.length / 2;
    const download = remote.downloadFile.bind(remote);
    remote.downloadFile = (jobId, path, sink, signal) => {
      const noted = async (piece: Buffer) => {
        await sink(piece);
        lengths.push(mirror().length);
      };
      return download(jobId, path, noted, signal);
    };
    expect(await poll()).toBe('current');
    expect(lengths.filter((length) => length > 0 && length < TEXT.length)).not.toEqual([]);
  });

  test('after the mirror comes raw as well, and only its missing bytes are appended', async () => {
    const { remote, engine, poll, mirror } = setUp();
    remote.files.set(NAME, TEXT.subarray(0, LONG_BYTES));
    expect(await poll()).toBe('current');
    remote.maxTextBytes = TEXT.length / 2;
    remote.files.set(NAME, GROWN);
    for (let polls = 0; polls < 3 && !mirror().equals(GROWN); polls++) await poll();
    expect(mirror().equals(GROWN)).toBe(true);
    expect(engine.store.liveFiles.ofJob(JOB)[0]).toMatchObject({ generation: 1, position: GROWN.length });
  });

  test('of a rewritten file starts a generation', async () => {
    const { remote, engine, poll, mirror } = setUp();
    remote.files.set(NAME, Buffer.alloc(LONG_BYTES / 2, 'the first content\n'));
    expect(await poll()).toBe('current');
    remote.maxTextBytes = TEXT.length / 2;
    remote.files.set(NAME, GROWN);
    for (let polls = 0; polls < 20 && !mirror().equals(GROWN); polls++) await poll();
    expect(mirror().equals(GROWN)).toBe(true);
    expect(engine.store.liveFiles.ofJob(JOB)[0]).toMatchObject({ generation: 2 });
  });

  test('is not taken from a listed file that ends in another text', async () => {
    const { remote, poll, mirror } = setUp();
    remote.maxTextBytes = TEXT.length / 2;
    const twin = keyText({ ...STDOUT, taskId: '9002' as TaskId });
    remote.files.set(twin, GROWN);
    remote.prefix = 'x';
    remote.listChangedFiles = async () => [`/x${twin}.txt`];
    expect(await poll()).toBe('stuck');
    expect(mirror().length).toBe(0);
  });

  test('is asked for less and less often where its raw bytes are refused, and the reason is given', async () => {
    const { remote, engine, poll, mirror } = setUp([STDOUT, STDERR]);
    remote.files.set(keyText(STDERR), Buffer.from('an error\n'));
    remote.maxTextBytes = TEXT.length / 2;
    remote.rawAccess = false;
    const asked: number[] = [];
    for (let polls = 0; polls < 1_200; polls++) {
      const before = remote.calls;
      expect(await poll()).toBe('stuck');
      if (remote.calls > before + 1) asked.push(polls);
    }
    expect(asked.length).toBeLessThan(13);
    expect(engine.store.liveFiles.ofJob(JOB).find(({ file }) => file === 'stdout')?.error?.message).toBe(
      'longer than this service can send as text: no such file',
    );
    remote.rawAccess = true;
    for (let polls = 0; polls < 1_800 && mirror().length === 0; polls++) await poll();
    expect(mirror().equals(TEXT)).toBe(true);
  });
});

describe('a text on which the service hangs', () => {
  /** The same files by another way, with the paths that were requested. */
  function setUpDirect(watched: readonly LiveFileKey[] = [STDOUT]) {
    const asked: string[] = [];
    const access = { isOpen: true };
    const other = new ModelRemote();
    const place = setUp(watched, {
      isOpen: () => access.isOpen,
      downloadFile(jobId, path, sink, signal) {
        asked.push(path);
        return other.downloadFile(jobId, path, sink, signal);
      },
    });
    const { remote } = place;
    other.files.set(NAME, TEXT);
    Object.assign(remote, { maxTextBytes: TEXT.length / 2, tooLong: 'timeout', maxRawBytes: LONG_BYTES });
    const downloads: string[] = [];
    const download = remote.downloadFile.bind(remote);
    remote.downloadFile = (jobId, path, sink, signal) => {
      downloads.push(path);
      return download(jobId, path, sink, signal);
    };
    return { ...place, other, asked, access, downloads };
  }

  test.each([
    ['of one file', [STDOUT]],
    ['of one among others', [STDOUT, STDERR]],
  ])('%s comes by direct transfer, and its raw bytes are not requested from the service', async (_, watched) => {
    const { remote, poll, mirror, asked, downloads, engine } = setUpDirect(watched);
    if (watched.length > 1) remote.files.set(keyText(STDERR), Buffer.from('an error\n'));
    await expect(poll()).rejects.toMatchObject({ code: 'timeout' });
    expect(await poll()).toBe('current');
    expect(mirror().equals(TEXT)).toBe(true);
    expect(new Set(asked)).toEqual(new Set([`/${NAME}.txt`]));
    expect(downloads).toEqual([]);
    if (watched.length > 1) expect(fs.readFileSync(engine.mirror(STDERR), 'utf8')).toBe('an error\n');
    const before = remote.calls;
    remote.files.set(NAME, Buffer.concat([TEXT, Buffer.from('více\n')]));
    expect(await poll()).toBe('current');
    expect(remote.calls).toBe(before + 1);
    expect(mirror().length).toBe(TEXT.length + Buffer.byteLength('více\n'));
  });

  test('does not hold up the other files of its job, where no direct transfer is open', async () => {
    const { remote, poll, mirror, access, engine } = setUpDirect([STDOUT, STDERR]);
    access.isOpen = false;
    remote.files.set(keyText(STDERR), Buffer.from('an error\n'));
    await expect(poll()).rejects.toMatchObject({ code: 'timeout' });
    for (let polls = 0; polls < 20; polls++) {
      remote.files.set(keyText(STDERR), Buffer.alloc(polls, 'x'));
      expect(await poll()).toBe('timeout');
      expect(fs.readFileSync(engine.mirror(STDERR)).length).toBe(polls);
    }
    expect(mirror().length).toBe(0);
  });

  test('is not searched for while the service answers no call', async () => {
    const { remote, poll, asked } = setUpDirect();
    for (let polls = 0; polls < 3; polls++) {
      const before = remote.calls;
      remote.failures.push(new JobtailError('timeout', 'it hangs'));
      await expect(poll()).rejects.toMatchObject({ code: 'timeout' });
      expect(remote.calls).toBe(before + 1);
    }
    expect(asked).toEqual([]);
  });

  test('is not what another file has, where the direct transfer brings that', async () => {
    const { poll, mirror, other } = setUpDirect();
    other.files.set(NAME, Buffer.from(TEXT).fill('x', TEXT.length - 16_000));
    await expect(poll()).rejects.toMatchObject({ code: 'timeout' });
    expect(await poll()).not.toBe('current');
    expect(mirror().length).toBe(0);
  });

  test('comes by the service again where the direct transfer finds no such file, as of a link', async () => {
    const { remote, poll, mirror, other, asked } = setUpDirect();
    other.files.clear();
    remote.maxTextBytes = Number.POSITIVE_INFINITY;
    expect(await poll()).toBe('timeout');
    for (let polls = 0; polls < 3 && mirror().length === 0; polls++) await poll();
    const grown = Buffer.concat([TEXT, TEXT]);
    remote.files.set(NAME, grown);
    Object.assign(remote, { maxTextBytes: LONG_BYTES, maxRawBytes: Number.POSITIVE_INFINITY });
    for (let polls = 0; polls < 3 && mirror().length < grown.length; polls++) await poll().catch(() => {});
    expect(mirror().equals(grown)).toBe(true);
    expect(asked).not.toEqual([]);
  });

  test.each(['unreachable', 'unexpected-answer'] as const)(
    'comes by the service in the same poll where the direct transfer fails as a whole (%s)',
    async (code) => {
      const { remote, poll, mirror, other, asked } = setUpDirect();
      remote.maxRawBytes = Number.POSITIVE_INFINITY;
      other.downloadFile = () => Promise.reject(new JobtailError(code, 'over SSH'));
      await expect(poll()).rejects.toMatchObject({ code: 'timeout' });
      expect(await poll()).toBe('current');
      expect(asked).not.toEqual([]);
      expect(mirror().equals(TEXT)).toBe(true);
    },
  );

  test('continues a mirror, and a raw download on which the service hangs comes by direct transfer next', async () => {
    const { remote, engine, poll, mirror, other, asked, downloads } = setUpDirect();
    remote.maxTextBytes = Number.POSITIVE_INFINITY;
    expect(await poll()).toBe('timeout');
    expect([asked, downloads]).toEqual([[], [`/${NAME}.txt`]]);
    for (let polls = 0; polls < 3 && mirror().length === 0; polls++) await poll();
    expect(mirror().equals(TEXT)).toBe(true);
    expect(downloads).toHaveLength(1);
    const grown = Buffer.concat([TEXT, TEXT]);
    for (const { files } of [remote, other]) files.set(NAME, grown);
    remote.maxTextBytes = LONG_BYTES;
    for (let polls = 0; polls < 3 && mirror().length < grown.length; polls++) await poll().catch(() => {});
    expect(mirror().equals(grown)).toBe(true);
    expect(engine.store.liveFiles.ofJob(JOB)[0]).toMatchObject({ generation: 1, position: grown.length, error: null });
    expect(downloads).toHaveLength(1);
  });
});
