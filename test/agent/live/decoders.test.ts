/** How a service decodes is found out, whatever a file begins with. */
import fs from 'node:fs';
import { expect, test } from 'vitest';
import { keyText, type TaskId } from '../../../src/job.ts';
import { Engine, STDOUT } from '../../support/engine.ts';
import { type DecodeBytesOptions, ModelRemote } from '../../support/model-remote.ts';
import { removedDirectory } from '../../support/temp-directory.ts';

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
