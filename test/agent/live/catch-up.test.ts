import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { keyText, type TaskId } from '../../../src/job.ts';
import { Engine, polledPlace, STDOUT } from '../../support/engine.ts';
import { expectCases } from '../../support/errors.ts';
import { type DecodeBytesOptions, ModelRemote } from '../../support/model-remote.ts';
import { removedDirectory } from '../../support/temp-directory.ts';
import { lived } from './story.ts';

const NAME = keyText(STDOUT);

test('each poll requests and appends what is written', async () => {
  await expectCases(path.join(import.meta.dirname, 'catch-up.txt'), lived);
});

test('a file that grows at each request needs no raw bytes for characters that are cut', async () => {
  const { remote, engine, poll, mirror } = polledPlace({ longBacklogBytes: Number.POSITIVE_INFINITY });
  engine.store.capabilities.set('text-encoding', 'utf-8');
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

  test('otherwise stays so where its U+FFFD stand for bytes without a character, and raw bytes are refused', async () => {
    const { remote, engine, poll, mirror, row } = polledPlace();
    engine.store.capabilities.set('text-encoding', 'other');
    remote.decodeWith = (bytes, from) => bytes.toString('latin1', from).replaceAll('\x81', '\ufffd');
    remote.rawAccess = false;
    remote.files.set(NAME, Buffer.from('ab\x81 \xe9\n', 'latin1'));
    for (let polls = 0; polls < 12; polls++) await poll(12_000);
    expect([engine.store.capabilities.get('text-encoding'), mirror().toString()]).toEqual(['other', 'ab']);
    expect(row()?.error?.message).toMatch(/^the mirror ends at byte 2: the service does not/);
  });

  test('that fits nothing that is known stops the file with words, and its polls become rare', async () => {
    const { remote, poll, mirror, row } = polledPlace();
    remote.files.set(NAME, Buffer.from('text'));
    remote.rawAccess = false;
    // From another offset than the first one, it shows something else each time.
    let calls = 0;
    remote.decodeWith = (bytes, offset) => (offset === 0 ? bytes.toString() : `nonsense ${calls++}`);
    const codes: (string | undefined)[] = [];
    for (let polls = 0; polls < 8; polls++) codes.push(await poll(10_000));
    expect(codes).toEqual([...Array(6).fill('raw-unavailable'), 'stuck', 'stuck']);
    expect(row()?.error?.message).toBe(
      'the mirror ends at byte 0: the service does not show what follows, and there are no raw bytes: no such file',
    );
    expect(mirror()).toHaveLength(0);
    remote.decodeWith = undefined;
    await poll(10_000);
    expect([mirror().toString(), row()?.error]).toEqual(['text', null]);
  });
});
