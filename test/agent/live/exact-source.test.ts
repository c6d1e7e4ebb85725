/** How a source with exact ranges looks: nothing of text, blocks or marks is needed to follow its files. */
import fs from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import type { LiveBytes, LiveSource } from '../../../src/agent/ports/live-source.ts';
import { keyText } from '../../../src/job.ts';
import { Engine, STDOUT } from '../../support/engine.ts';
import { ModelRemote } from '../../support/model-remote.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

const files = new Map<string, Buffer>();

function rangeOf(file: Buffer, from: number): LiveBytes {
  let at = from;
  return {
    from,
    isRaw: true,
    next: async (max) => {
      const bytes = file.subarray(at, at + max);
      at += bytes.length;
      return bytes;
    },
    whatFollows: async () => 'nothing',
    sameness: file.toString('latin1', from),
    isEndCertain: true,
    size: Math.max(0, file.length - from),
    relativePath: null,
    raw: { download: async () => ({ isThere: false, reason: 'each byte was received' }) },
    release: async () => {},
  };
}

const exactRanges: LiveSource = {
  async bytes(wanted) {
    const found = wanted.flatMap((request) => {
      const file = files.get(keyText(request));
      return file === undefined ? [] : [[keyText(request), rangeOf(file, request.from)] as const];
    });
    return { files: new Map(found), refused: 0 };
  },
  overlapStart: () => 0,
};

test('files of a source with exact ranges are followed: any bytes, growth, truncation and rewrite', async () => {
  let now = 0;
  const remote = new ModelRemote();
  const engine = new Engine({ directory: temporaryDirectory(), remote, now: () => now, source: exactRanges });
  onTestFinished(() => engine.kill());
  engine.watch([STDOUT]);
  const follow = async (bytes: Buffer) => {
    files.set(keyText(STDOUT), bytes);
    for (let polls = 0; polls < 3; polls++, now += 6_000) await engine.poll();
    expect(fs.readFileSync(engine.mirror(STDOUT))).toEqual(bytes);
  };
  const noise = Buffer.from([0xff, 0xfe, 0xef, 0xbf, 0xbd, 0xc3, 0x80, 0]);
  await follow(noise);
  await follow(Buffer.concat([noise, Buffer.from('a line\n'), noise]));
  await follow(noise.subarray(0, 3));
  await follow(Buffer.from('another content'));
  expect(engine.mismatches.map(([kind]) => kind)).toEqual(['truncated', 'rewritten']);
  expect(remote.calls).toBe(0);
});

test('an answer that shows nothing of a mirror proves nothing about it', async () => {
  const source: LiveSource = { ...exactRanges, overlapStart: (end) => end.length };
  const engine = new Engine({ directory: temporaryDirectory(), remote: new ModelRemote(), now: () => 0, source });
  onTestFinished(() => engine.kill());
  engine.watch([STDOUT]);
  for (const text of ['text', 'TEXT and more']) {
    files.set(keyText(STDOUT), Buffer.from(text));
    await engine.poll();
    expect(fs.readFileSync(engine.mirror(STDOUT), 'utf8')).toBe('text');
  }
});
