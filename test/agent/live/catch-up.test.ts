import fs from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { keyText, type TaskId } from '../../../src/job.ts';
import { Engine, type EngineOptions, JOB, STDOUT } from '../../support/engine.ts';
import type { DecodeBytesOptions } from '../../support/model-remote.ts';
import { ModelRemote } from '../../support/model-remote.ts';
import { removedDirectory, temporaryDirectory } from '../../support/temp-directory.ts';

const NAME = keyText(STDOUT);

/** A file of any length comes as text. */
const AS_TEXT = { longBacklogBytes: Number.POSITIVE_INFINITY, known: true };

/** `known`: raw bytes proved before that the service decodes UTF-8. */
function setUp({ known = false, ...options }: Partial<EngineOptions> & { readonly known?: boolean } = {}) {
  const remote = new ModelRemote();
  let time = 1_000_000;
  const directory = temporaryDirectory();
  const start = () => {
    const engine = new Engine({
      directory,
      remote,
      now: () => time,
      ...options,
    });
    engine.watch([STDOUT]);
    onTestFinished(() => engine.kill());
    return engine;
  };
  const engine = start();
  if (known) engine.store.capabilities.set('text-encoding', 'utf-8');
  return {
    remote,
    engine,
    start,
    file: engine.mirror(STDOUT),
    mirror: () => fs.readFileSync(engine.mirror(STDOUT)),
    pass: (ms: number) => {
      time += ms;
    },
    poll: async (isFinal = false) => {
      const polled = await engine.poll(isFinal);
      expect(remote.held).toBe(0);
      expect([...polled.errors.values()]).toEqual([]);
      return polled.outcomes.get(NAME);
    },
  };
}

describe('text to bytes', () => {
  test.each([1_000, 20_000])('a text full of cut characters costs three requests: %i lines', async (lines) => {
    const { remote, poll, mirror } = setUp(AS_TEXT);
    const text = Buffer.from(`x${'日本語のログ '.repeat(lines)}`);
    remote.files.set(NAME, text);
    expect(await poll()).toBe('current');
    expect(mirror().equals(text)).toBe(true);
    expect(remote.calls).toBe(3);
    expect(remote.rawBytes).toBe(0);
    // U+FFFD takes as many bytes as the characters it stands for, at most three times.
    expect(remote.textBytes).toBeLessThan(text.length * 3.01);
  });

  test('a file that grows at each request needs no raw bytes for characters that are cut', async () => {
    const { remote, poll, mirror } = setUp(AS_TEXT);
    const text = Buffer.from(`x${'日本語のログ '.repeat(5_000)}`);
    let length = 3_000;
    remote.files.set(NAME, text.subarray(0, length));
    remote.onPartRequest = () => {
      length += 1_700;
      remote.files.set(NAME, text.subarray(0, length));
    };
    while (length < text.length) await poll();
    expect(await poll()).toBe('current');
    expect(mirror().equals(text)).toBe(true);
    expect(remote.rawBytes).toBe(0);
  });

  test('bytes that are not UTF-8, a genuine U+FFFD and a byte-order mark come out exact', async () => {
    for (const bytes of [
      Buffer.from('a\xff\xfeb', 'latin1'),
      Buffer.from('a\ufffdb\ufffd'),
      Buffer.from('\ufeffa\ufeff\ufeffb'),
      Buffer.from([0xe2, 0x82]),
      Buffer.from([0xff]),
      Buffer.concat([Buffer.alloc(5000, 'ž'), Buffer.from([0xc5]), Buffer.alloc(3000, '\xff', 'latin1')]),
    ]) {
      const { remote, poll, mirror } = setUp();
      remote.files.set(NAME, bytes);
      await poll(true);
      await poll(true);
      expect(mirror().toString('hex')).toBe(bytes.toString('hex'));
      remote.files.set(NAME, Buffer.concat([bytes, Buffer.from('\xff more €', 'utf8'), Buffer.from([0xfe])]));
      await poll(true);
      await poll(true);
      expect(mirror().toString('hex')).toBe(remote.files.get(NAME)?.toString('hex'));
    }
  });
});

describe('how a service decodes', () => {
  const BEGINNINGS = ['', '\ufeff', '\ufeff\ufeff', 'x', 'č', '日', '𝄞'].map((text) => Buffer.from(text));
  BEGINNINGS.push(Buffer.from([0xff]), Buffer.from([0xc5]), Buffer.from([0xff, 0xfe]), Buffer.from([0xfe, 0xff]));
  const DECODINGS: [string, DecodeBytesOptions][] = [
    ['blocks', {}],
    ['blocks that swallow a mark', { swallowBom: true }],
    ['one decoder to the end', { stream: true }],
    ['blocks of the older runtime', { olderRuntime: true }],
    ['otherwise', { latin1: true }],
  ];

  /** Polls files that begin so until each mirror is equal, or a few times. */
  async function mirrorsOf(beginnings: readonly Buffer[], how: DecodeBytesOptions, learned: string | undefined) {
    return removedDirectory(async (directory) => {
      const remote = new ModelRemote();
      let now = 1_000_000;
      const engine = new Engine({ directory, remote, now: () => now });
      if (learned !== undefined) engine.store.capabilities.set('text-encoding', learned);
      remote.decoding = how;
      const files = beginnings.map((beginning, index) => ({
        key: { ...STDOUT, taskId: String(1 + index) as TaskId },
        bytes: Buffer.concat([beginning, Buffer.from(`line ${index} č\n`), Buffer.from('a\xb9 \xe9\n', 'latin1')]),
      }));
      engine.watch(files.map(({ key }) => key));
      for (const { key, bytes } of files) remote.files.set(keyText(key), bytes);
      for (let polls = 0; polls < 6; polls++, now += 12_000) await engine.poll();
      const mirrors = files.map(({ key }) => fs.readFileSync(engine.mirror(key)));
      engine.kill();
      return files.map(({ bytes }, index) => [bytes.toString('latin1'), mirrors[index]?.toString('latin1')]);
    });
  }

  test.each(DECODINGS)('%s: every beginning is mirrored in a few polls, whatever was learned', async (_, how) => {
    // One that begins with a mark of UTF-16 does not show another decoder.
    for (const beginning of BEGINNINGS.slice(0, how.latin1 ? -2 : undefined))
      for (const [bytes, mirror] of await mirrorsOf([beginning], how, undefined)) expect(mirror).toBe(bytes);
    for (const learned of how.latin1 ? ['other', 'windows-1250'] : ['utf-8', 'other', 'windows-1250'])
      for (const [bytes, mirror] of await mirrorsOf(BEGINNINGS, how, learned)) expect(mirror).toBe(bytes);
  });

  test('is learned from raw bytes at the first text beyond ASCII, once for all files', async () => {
    const { remote, engine, poll, mirror } = setUp();
    remote.files.set(NAME, Buffer.from('only ASCII\n'));
    await poll();
    expect(engine.store.capabilities.get('text-encoding')).toBeUndefined();
    expect(remote.rawBytes).toBe(0);
    remote.files.set(NAME, Buffer.from('only ASCII\nkůň\n'));
    expect(await poll()).toBe('current');
    expect(engine.store.capabilities.get('text-encoding')).toBe('utf-8');
    const { rawBytes } = remote;
    remote.files.set(NAME, Buffer.from('only ASCII\nkůň\nkůň\n'));
    expect(await poll()).toBe('current');
    expect(mirror().toString()).toBe('only ASCII\nkůň\nkůň\n');
    expect(remote.rawBytes).toBe(rawBytes);
  });

  test('otherwise is followed by ASCII and raw bytes, with pauses, and never guessed', async () => {
    const { remote, engine, poll, pass, mirror } = setUp();
    remote.decoding = { latin1: true };
    const text = Buffer.from('Größe 1\n', 'latin1');
    for (let lines = 1; lines <= 4; lines++) {
      remote.files.set(NAME, Buffer.concat(Array<Buffer>(lines).fill(text)));
      for (let polls = 0; polls < 3; polls++, pass(4_000)) await poll();
      expect(mirror()).toEqual(remote.files.get(NAME));
    }
    expect(engine.store.capabilities.get('text-encoding')).toBe('other');
    const { rawBytes } = remote;
    for (let polls = 0; polls < 9; polls++, pass(4_000)) await poll();
    expect(remote.rawBytes).toBe(rawBytes);
  });

  test.each([
    ['in the middle', 'error \xff\xfe: none\n'],
    ['in each line', 'a\xe9\nb\xe9\nc\xe9\nd\xe9\n'],
    ['before a short end', `${'\xe9'.repeat(90)}\n`],
  ])('that is undecodable %s is downloaded once while nothing is written', async (_, bytes) => {
    const { remote, poll, pass, mirror } = setUp();
    const content = Buffer.from(bytes, 'latin1');
    remote.files.set(NAME, content);
    for (let polls = 0; polls < 40; polls++, pass(60_000)) await poll();
    expect(mirror()).toEqual(content);
    expect(remote.rawBytes).toBe(content.length);
    remote.files.set(NAME, Buffer.concat([content, content]));
    for (let polls = 0; polls < 40; polls++, pass(60_000)) await poll();
    expect(mirror()).toEqual(remote.files.get(NAME));
  });

  test('UTF-8 shows the same text of more bytes of a character at the end, which come by rare downloads', async () => {
    const { remote, poll, pass, mirror } = setUp();
    for (const content of ['A\xe2', 'A\xe2\x82']) {
      remote.files.set(NAME, Buffer.from(content, 'latin1'));
      for (let polls = 0; polls < 8; polls++, pass(12_000)) await poll();
      expect(mirror().toString('latin1')).toBe(content);
    }
    const { rawBytes } = remote;
    for (let polls = 0; polls < 50; polls++, pass(12_000)) await poll();
    expect(remote.rawBytes - rawBytes).toBeLessThanOrEqual(5 * 3);
  });

  test('otherwise is not taken for one that stripped a mark from a text that repeats', async () => {
    const { remote, poll, pass, mirror } = setUp();
    remote.decoding = { latin1: true };
    const content = Buffer.from(`A\xff\xfe\xff\xe2\x82\xac${'\r\nA\r\n\r\n\r\n'.repeat(200)}`, 'latin1');
    remote.files.set(NAME, content);
    for (let polls = 0; polls < 4; polls++, pass(12_000)) await poll();
    expect(mirror()).toEqual(content);
  });

  test('otherwise stays so where its U+FFFD stand for bytes without a character, and raw bytes are refused', async () => {
    const { remote, engine, pass, mirror } = setUp();
    engine.store.capabilities.set('text-encoding', 'other');
    remote.decodeWith = (bytes, from) => bytes.toString('latin1', from).replaceAll('\x81', '\ufffd');
    remote.rawAccess = false;
    remote.files.set(NAME, Buffer.from('ab\x81 \xe9\n', 'latin1'));
    for (let polls = 0; polls < 12; polls++, pass(12_000)) await engine.poll();
    expect(engine.store.capabilities.get('text-encoding')).toBe('other');
    expect(mirror().toString('latin1')).toBe('ab');
    expect(engine.store.liveFiles.ofJob(JOB)[0]?.error?.message).toMatch(
      /^the mirror ends at byte 2: the service does not/,
    );
  });

  test('that fits nothing that is known stops the file with words, and its polls become rare', async () => {
    const { remote, engine, pass, mirror } = setUp();
    remote.files.set(NAME, Buffer.from('text'));
    remote.rawAccess = false;
    // From another offset than the first one, it shows something else each time.
    let calls = 0;
    remote.decodeWith = (bytes, offset) => (offset === 0 ? bytes.toString() : `nonsense ${calls++}`);
    const codes: (string | undefined)[] = [];
    for (let polls = 0; polls < 8; polls++) {
      const { errors, outcomes } = await engine.poll();
      codes.push(errors.get(NAME)?.code ?? outcomes.get(NAME));
      pass(10_000);
    }
    expect(codes).toEqual([...Array(6).fill('raw-unavailable'), 'stuck', 'stuck']);
    const [row] = engine.store.liveFiles.ofJob(JOB);
    expect(row?.error?.message).toBe(
      'the mirror ends at byte 0: the service does not show what follows, and there are no raw bytes: no such file',
    );
    expect(mirror()).toHaveLength(0);
    remote.decodeWith = undefined;
    await engine.poll();
    expect(mirror()).toEqual(Buffer.from('text'));
    expect(engine.store.liveFiles.ofJob(JOB)[0]?.error).toBeNull();
  });
});

describe('truncation and rewriting', () => {
  test.each(['content\n', 'content \ufffd'])(
    'a stale size is waited out, also a second one, with the file %j between them',
    async (content) => {
      const { remote, poll, pass, mirror, file } = setUp();
      remote.files.set(NAME, Buffer.from(content));
      await poll(true);
      for (let time = 0; time < 2; time++, pass(6_000)) {
        remote.staleSizes.set(NAME, 3);
        expect(await poll()).toBe('changing');
        pass(4_000);
        expect(await poll()).toBe('changing');
        pass(2_000);
        remote.staleSizes.clear();
        expect(await poll()).not.toBe('changing');
      }
      expect(mirror().toString()).toBe(content);
      expect(fs.existsSync(`${file}.1`)).toBe(false);
    },
  );
});

describe('what was never promised says nothing against what was', () => {
  /** A power loss: behind what was committed there are zeros where bytes were written and not flushed. */
  async function tornBehind(committed: Buffer, tail = Buffer.alloc(3)) {
    const { remote, engine, start, file, ...rest } = setUp();
    remote.files.set(NAME, committed);
    await engine.poll(true);
    engine.kill();
    fs.appendFileSync(file, tail);
    return { ...rest, remote, file, engine: start() };
  }

  test('a torn tail is compared also where no character starts before it', async () => {
    const bytes = Buffer.from(`${'\xe9'.repeat(13)}tail\n`, 'latin1');
    const { remote, engine, pass, mirror } = await tornBehind(
      bytes.subarray(0, 10),
      Buffer.from('\xe8\xe8\xe8tail\n', 'latin1'),
    );
    remote.files.set(NAME, bytes);
    for (let polls = 0; polls < 3; polls++, pass(60_000)) {
      await engine.poll();
      const { position } = engine.store.liveFiles.ofJob(JOB)[0] ?? { position: 0 };
      expect(mirror().subarray(0, position)).toEqual(bytes.subarray(0, position));
    }
    expect(mirror()).toEqual(bytes);
  });

  test.each([
    ['undecodable bytes', Buffer.from('a\ufffd0')],
    ['a long stretch of undecodable bytes', Buffer.concat([Buffer.from('a'), Buffer.alloc(600, 0xff)])],
    ['text', Buffer.from('text €')],
  ])('a torn tail behind %s starts no generation', async (_, committed) => {
    const { remote, engine, pass, mirror, file } = await tornBehind(committed);
    const grown = Buffer.concat([committed, Buffer.from('more')]);
    remote.files.set(NAME, grown);
    for (let polls = 0; polls < 3; polls++) {
      await engine.poll();
      pass(6_000);
    }
    expect(mirror().toString('hex')).toBe(grown.toString('hex'));
    expect(engine.store.liveFiles.ofJob('501' as never)[0]).toMatchObject({ generation: 1, position: grown.length });
    expect(fs.existsSync(`${file}.1`)).toBe(false);
  });

  test('a torn first append is taken back, also where the text goes on beyond ASCII', async () => {
    const { remote, engine, start, mirror, file } = setUp({ known: true });
    remote.files.set(NAME, Buffer.alloc(0));
    await engine.poll();
    engine.kill();
    fs.writeFileSync(file, 'A\0\0');
    const next = start();
    remote.files.set(NAME, Buffer.from('A0Aé'));
    await next.poll();
    expect(mirror().toString()).toBe('A0Aé');
  });
});
