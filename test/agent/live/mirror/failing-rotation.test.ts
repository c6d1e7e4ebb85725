/** A step of a new generation that fails, in a process that goes on: the next poll finishes what was begun. */
import fs from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { keyText } from '../../../../src/job.ts';
import { Engine, JOB, STDOUT } from '../../../support/engine.ts';
import { ModelRemote } from '../../../support/model-remote.ts';
import { temporaryDirectory } from '../../../support/temp-directory.ts';

const STEPS = ['begin', 'copy', 'copied', 'number', 'cut', 'end'] as const;

test.each(STEPS)('after %s fails, nothing is promised that is not there, and nothing is lost', async (step) => {
  const remote = new ModelRemote();
  let now = 1_000_000;
  let isFailing = true;
  const engine = new Engine({
    ...{ directory: temporaryDirectory(), remote, now: () => (now += 10_000) },
    checkpoint: (at) => {
      if (isFailing && at === `rotation:${step}`) throw new Error('a disk that fails');
    },
  });
  onTestFinished(() => engine.kill());
  engine.watch([STDOUT]);
  const read = (end = '') => fs.readFileSync(`${engine.mirror(STDOUT)}${end}`, 'utf8');
  remote.files.set(keyText(STDOUT), Buffer.from('the first one\n'));
  await engine.poll();
  expect(read()).toBe('the first one\n');
  remote.files.set(keyText(STDOUT), Buffer.from('another one\n'));
  for (let polls = 0; polls < 4; polls++) {
    await engine.poll();
    const [row] = engine.store.liveFiles.ofJob(JOB);
    expect(row?.position).toBeLessThanOrEqual(read().length);
  }
  isFailing = false;
  for (let polls = 0; polls < 4; polls++) await engine.poll();
  expect([read(), read('.1')]).toEqual(['another one\n', 'the first one\n']);
  expect(fs.existsSync(`${engine.mirror(STDOUT)}.2`)).toBe(false);
  expect(engine.store.liveFiles.ofJob(JOB)).toMatchObject([{ generation: 2, rotation: null, error: null }]);
});
