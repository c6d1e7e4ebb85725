import fs from 'node:fs';
import { describe, expect, test } from 'vitest';
import { keyText } from '../../../src/job.ts';
import { Engine, STDOUT } from '../../support/engine.ts';
import { memoryWriter } from '../../support/memory-content.ts';
import { ModelRemote } from '../../support/model-remote.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

const NAME = keyText(STDOUT);

function setUp(options: { contentEncoding?: string; keepGenerations?: number } = {}) {
  const remote = new ModelRemote();
  let time = 1_000_000;
  const directory = temporaryDirectory();
  const start = () => {
    const engine = new Engine({
      directory,
      remote,
      now: () => time,
      newContent: () => memoryWriter(remote),
      ...options,
    });
    engine.watch([STDOUT]);
    return engine;
  };
  const engine = start();
  return {
    remote,
    engine,
    start,
    file: engine.mirror(STDOUT),
    mirror: () => fs.readFileSync(engine.mirror(STDOUT)),
    pass: (ms: number) => {
      time += ms;
    },
    poll: async (final = false) => {
      const polled = await engine.poll(final);
      expect(remote.held).toBe(0);
      expect([...polled.errors.values()]).toEqual([]);
      return polled.ends.get(NAME);
    },
  };
}

describe('text to bytes', () => {
  test('a file that is not there yet is no error, and has an empty mirror', async () => {
    const { poll, mirror } = setUp();
    expect(await poll()).toBe('absent');
    expect(mirror()).toEqual(Buffer.alloc(0));
  });

  test('appends what is new, and nothing twice', async () => {
    const { remote, poll, mirror } = setUp();
    for (const text of ['one\n', 'one\ntwo\r\n', 'one\ntwo\r\n  three \0\x1b[31m']) {
      remote.files.set(NAME, Buffer.from(text));
      expect(await poll()).toBe('current');
      expect(await poll()).toBe('current');
      expect(mirror().toString()).toBe(text);
    }
  });

  test('a character cut by the end of a growing file waits for its rest', async () => {
    const { remote, poll, mirror } = setUp();
    const text = Buffer.from('háj €');
    for (let length = 0; length <= text.length; length++) {
      remote.files.set(NAME, text.subarray(0, length));
      await poll();
      expect(text.subarray(0, mirror().length)).toEqual(mirror());
      expect(mirror().length).toBeGreaterThanOrEqual(length - 3);
    }
    expect(mirror()).toEqual(text);
  });

  test('a backlog full of cut characters costs two readings', async () => {
    const { remote, poll, mirror } = setUp();
    const text = Buffer.from(`x${'日本語のログ '.repeat(20_000)}`);
    remote.files.set(NAME, text);
    expect(await poll()).toBe('current');
    expect(mirror().equals(text)).toBe(true);
    expect(remote.calls).toBe(2);
    expect(remote.rawBytes).toBe(0);
    // U+FFFD takes as many bytes as the characters it stands for, at most three times.
    expect(remote.textBytes).toBeLessThan(text.length * 2.01);
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

  test('a byte-order mark that the service swallows is put back', async () => {
    for (const rest of [
      'a',
      'aaaaaaaa',
      '€€€',
      'ž',
      '日'.repeat(300),
      'x'.repeat(100_000),
      `abc${'日本 '.repeat(9000)}`,
    ]) {
      const { remote, poll, mirror } = setUp();
      remote.decoding = { swallowBom: true };
      remote.files.set(NAME, Buffer.from(`\ufeff${rest}`));
      await poll(true);
      await poll(true);
      expect([rest.slice(0, 9), mirror().equals(Buffer.from(`\ufeff${rest}`))]).toEqual([rest.slice(0, 9), true]);
      remote.files.set(NAME, Buffer.from(`\ufeff${rest}\ufeffend`));
      await poll(true);
      expect(mirror().equals(Buffer.from(`\ufeff${rest}\ufeffend`))).toBe(true);
    }
  });

  test('the code page of an old server is found out, and kept', async () => {
    const { remote, poll, mirror, start, engine } = setUp();
    remote.decoding = { codePage: 'windows-1250' };
    const text = Buffer.from('Příliš žluťoučký kůň úpěl ďábelské ódy\n'.repeat(50));
    remote.files.set(NAME, text);
    await poll();
    expect(mirror().equals(text)).toBe(true);
    expect(engine.store.habits.get('text-encoding')).toBe('windows-1250');
    const again = start();
    remote.files.set(NAME, Buffer.concat([text, text]));
    await again.poll();
    expect(mirror().equals(Buffer.concat([text, text]))).toBe(true);
  });

  test('a wrong contentEncoding is said, and nothing wrong is written', async () => {
    const { remote, engine, mirror } = setUp({ contentEncoding: 'utf-8' });
    remote.decoding = { codePage: 'windows-1252' };
    remote.files.set(NAME, Buffer.from('déjà vu'));
    const polled = await engine.poll();
    expect(polled.errors.get(NAME)?.hint).toContain('service.contentEncoding');
    expect(mirror().length).toBe(0);
  });
});

describe('truncation and rewriting', () => {
  test('is acted upon at the second sight, and the old generation is kept', async () => {
    const { remote, poll, pass, mirror, file, engine } = setUp();
    remote.files.set(NAME, Buffer.from('old content\n'));
    await poll();
    const inode = fs.statSync(file).ino;
    remote.files.set(NAME, Buffer.from('new and longer content\n'));
    expect(await poll()).toBe('witness');
    expect(mirror().toString()).toBe('old content\n');
    pass(2_000);
    expect(await poll()).toBe('current');
    expect(mirror().toString()).toBe('new and longer content\n');
    expect(fs.readFileSync(`${file}.1`, 'utf8')).toBe('old content\n');
    expect(fs.statSync(file).ino).toBe(inode);
    expect(engine.store.liveFiles.ofJob('501' as never)[0]?.generation).toBe(2);
  });

  test('a stale size is waited out', async () => {
    const { remote, poll, pass, mirror, file } = setUp();
    remote.files.set(NAME, Buffer.from('x'.repeat(1000)));
    await poll();
    remote.staleSizes.set(NAME, 100);
    expect(await poll()).toBe('witness');
    pass(3_000);
    expect(await poll()).toBe('witness');
    remote.staleSizes.clear();
    expect(await poll()).toBe('current');
    expect(mirror().length).toBe(1000);
    expect(fs.existsSync(`${file}.1`)).toBe(false);
  });

  test('keeps as many generations as it should, the youngest first', async () => {
    const { remote, poll, pass, file } = setUp({ keepGenerations: 3 });
    for (let generation = 0; generation < 6; generation++) {
      remote.files.set(NAME, Buffer.from(`generation ${generation}`));
      await poll();
      pass(10_000);
      await poll();
    }
    const kept = [1, 2, 3, 4].map((number) =>
      fs.existsSync(`${file}.${number}`) ? fs.readFileSync(`${file}.${number}`, 'utf8') : undefined,
    );
    expect(kept).toEqual(['generation 4', 'generation 3', 'generation 2', undefined]);
  });
});

describe('what was never promised says nothing against what was', () => {
  /** A power loss: behind what was committed there are zeros where bytes were written and not flushed. */
  async function tornBehind(committed: Buffer) {
    const { remote, engine, start, file, ...rest } = setUp();
    remote.files.set(NAME, committed);
    await engine.poll(true);
    await engine.kill();
    fs.appendFileSync(file, Buffer.alloc(3));
    return { ...rest, remote, file, engine: start() };
  }

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

  test('nor does it if the file never grows again', async () => {
    const committed = Buffer.from('a\ufffd');
    const { engine, pass, mirror, file } = await tornBehind(committed);
    for (let polls = 0; polls < 3; polls++) {
      await engine.poll();
      pass(6_000);
    }
    expect(mirror()).toEqual(committed);
    expect(fs.existsSync(`${file}.1`)).toBe(false);
  });

  test('a rewritten file keeps what was promised of its mirror, and no more', async () => {
    const { remote, engine, pass, mirror, file } = await tornBehind(Buffer.from('promised'));
    remote.files.set(NAME, Buffer.from('rewritten'));
    for (let polls = 0; polls < 3; polls++) {
      await engine.poll();
      pass(6_000);
    }
    expect(mirror().toString()).toBe('rewritten');
    expect(fs.readFileSync(`${file}.1`, 'utf8')).toBe('promised');
  });
});

describe('a mirror that somebody changed', () => {
  test.each([
    ['appended to', (file: string) => fs.appendFileSync(file, 'junk')],
    ['edited in place', (file: string) => fs.writeFileSync(file, fs.readFileSync(file).fill(0x2a, 100, 110))],
    ['truncated', (file: string) => fs.truncateSync(file, 300)],
    ['emptied', (file: string) => fs.truncateSync(file, 0)],
    ['deleted', (file: string) => fs.rmSync(file)],
    [
      'replaced',
      (file: string) => {
        fs.rmSync(file);
        fs.writeFileSync(file, 'something else');
      },
    ],
    ['zeroed at its end', (file: string) => fs.writeFileSync(file, fs.readFileSync(file).fill(0, 900))],
  ])('%s is mended from the service', async (_, harm) => {
    for (const restart of [false, true]) {
      const { remote, engine, start, poll, pass, mirror, file } = setUp();
      const bytes = Buffer.from(Array.from({ length: 200 }, (_, line) => `line ${line} žluť\n`).join(''));
      remote.files.set(NAME, bytes);
      await poll();
      if (restart) await engine.kill();
      harm(file);
      const next = restart ? start() : engine;
      for (let polls = 0; polls < 3; polls++) {
        await next.poll();
        pass(5_000);
      }
      expect(mirror().equals(bytes)).toBe(true);
      expect(fs.existsSync(`${file}.1`)).toBe(false);
      expect(next.store.liveFiles.ofJob('501' as never)[0]?.generation).toBe(1);
    }
  });

  test('a link in its place is never followed', async () => {
    const { remote, engine, file, poll } = setUp();
    remote.files.set(NAME, Buffer.from('content'));
    await poll();
    fs.rmSync(file);
    fs.writeFileSync(`${file}.elsewhere`, 'precious');
    fs.symlinkSync(`${file}.elsewhere`, file);
    const polled = await engine.poll();
    expect(polled.errors.get(NAME)?.hint).toContain('out of the way');
    expect(fs.readFileSync(`${file}.elsewhere`, 'utf8')).toBe('precious');
  });
});
