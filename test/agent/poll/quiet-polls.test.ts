/** Polls of quiet files: nothing is opened and nothing compared, and still nothing is missed. */
import fs from 'node:fs';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { keyText, type LiveFileKey } from '../../../src/job.ts';
import { Engine, ModelDisk, STDOUT, TASK } from '../../support/engine.ts';
import { ModelRemote } from '../../support/model-remote.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

const STDERR: LiveFileKey = { taskId: TASK, file: 'stderr' };
const FIRST = 'příliš žluťoučký kůň\n'.repeat(100);

class CountingDisk extends ModelDisk {
  opened = 0;

  override open(...args: Parameters<ModelDisk['open']>): ReturnType<ModelDisk['open']> {
    this.opened += 1;
    return super.open(...args);
  }
}

let remote: ModelRemote;
let disk: CountingDisk;
let engine: Engine;

/** Polled until it is quiet: stdout is there, stderr is not. */
beforeEach(async () => {
  remote = new ModelRemote();
  disk = new CountingDisk();
  let now = 1_000_000;
  engine = new Engine({ directory: temporaryDirectory(), remote, disk, now: () => (now += 10_000) });
  onTestFinished(() => engine.kill());
  engine.watch([STDOUT, STDERR]);
  write(FIRST);
  for (let polls = 0; polls < 3; polls += 1) await engine.poll();
  disk.opened = 0;
});

const write = (text: string) => remote.files.set(keyText(STDOUT), Buffer.from(text));
const mirror = () => fs.readFileSync(engine.mirror(STDOUT), 'utf8');
/** As an editor leaves it: the times of two writes within one tick of the clock would be the same. */
function edit(change: (file: string) => void): void {
  const file = engine.mirror(STDOUT);
  change(file);
  if (fs.existsSync(file)) fs.utimesSync(file, new Date(), new Date(Date.now() + 5_000));
}

it('a quiet poll opens no mirror', async () => {
  const { appended, outcomes } = await engine.poll();
  expect({ appended, outcomes: [...outcomes] }).toEqual({
    appended: 0,
    outcomes: [
      [keyText(STDERR), 'absent'],
      [keyText(STDOUT), 'current'],
    ],
  });
  expect(disk.opened).toBe(0);
});

it('a quiet poll sees what is new at once, with the call that asks', async () => {
  write(`${FIRST}more\n`);
  const calls = remote.calls;
  expect((await engine.poll()).appended).toBe(5);
  expect(remote.calls - calls).toBe(1);
  expect(mirror()).toBe(`${FIRST}more\n`);
  const grownAt = () => engine.store.liveFiles.get('501' as never, STDOUT)?.grownAt ?? 0;
  const before = grownAt();
  await engine.poll();
  expect(grownAt()).toBe(before);
  write(`${FIRST}more\n.`);
  await engine.poll();
  expect(grownAt()).toBeGreaterThan(before);
});

it('a quiet poll leaves the mirrors of quiet files alone when another one grows', async () => {
  write(`${FIRST}more\n`);
  await engine.poll();
  expect(disk.opened).toBe(1);
});

it('a quiet poll sees a file that appears, and one that is gone and comes back', async () => {
  remote.files.set(keyText(STDERR), Buffer.from('an error\n'));
  expect((await engine.poll()).appended).toBe(9);
  remote.files.delete(keyText(STDERR));
  expect((await engine.poll()).outcomes.get(keyText(STDERR))).toBe('absent');
  remote.files.set(keyText(STDERR), Buffer.from('an error\nand one\n'));
  expect((await engine.poll()).appended).toBe(8);
});

it.each([
  ['appended to', (file: string) => fs.appendFileSync(file, 'junk\n')],
  ['changed', (file: string) => fs.writeFileSync(file, FIRST.replaceAll('k', 'x'))],
  ['cut', (file: string) => fs.truncateSync(file, 100)],
  ['deleted', (file: string) => fs.rmSync(file)],
])('a quiet poll finds a mirror that was %s', async (_, change) => {
  edit(change);
  for (let polls = 0; polls < 4; polls += 1) await engine.poll();
  expect(mirror()).toBe(FIRST);
});

it('a file that is again what it was before it grew is not quiet', async () => {
  write(`${FIRST}more\n`);
  await engine.poll();
  write(FIRST);
  for (let polls = 0; polls < 4; polls += 1) await engine.poll();
  expect(mirror()).toBe(FIRST);
});

it('a quiet poll fails with the service, and goes on being quiet', async () => {
  remote.poisoned.add(keyText(STDOUT));
  expect((await engine.poll()).errors.has(keyText(STDOUT))).toBe(true);
  remote.poisoned.clear();
  expect((await engine.poll()).outcomes.get(keyText(STDOUT))).toBe('current');
  expect(engine.store.liveFiles.ofJob('501' as never).every(({ error }) => error === null)).toBe(true);
});

it('entries of a response that were not requested are counted', async () => {
  const readParts = remote.readParts.bind(remote);
  remote.readParts = async (...args) => ({ ...(await readParts(...args)), refused: 1 });
  write(`${FIRST}more`);
  expect(await engine.poll()).toMatchObject({ refused: expect.toSatisfy((count: number) => count >= 1) });
  expect(mirror()).toBe(`${FIRST}more`);
});
