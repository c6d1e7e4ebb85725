/** One file that the service fails to send: its requests are repeated with a pause of its own, and the others go on. */
import { expect, it } from 'vitest';
import { keyText, type LiveFileKey, type TaskId } from '../../../src/job.ts';
import { Engine, JOB, ModelDisk, STDOUT } from '../../support/engine.ts';
import { ModelRemote } from '../../support/model-remote.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

const NAME = keyText(STDOUT);
const OTHER: LiveFileKey = { taskId: '9002' as TaskId, file: 'stdout' };

function setUp() {
  const remote = new ModelRemote();
  const disk = new ModelDisk();
  let now = 1_000_000;
  const engine = new Engine({ directory: temporaryDirectory(), remote, now: () => now, disk });
  engine.watch([STDOUT, OTHER]);
  for (const name of [NAME, keyText(OTHER)]) remote.files.set(name, Buffer.from(name));
  let asked = new Set<string>();
  remote.onPartRequest = (request) => asked.add(keyText(request));
  /** Polls each second; the seconds at which the file was requested. */
  const requestedAt = async (seconds: number, hasError = true) => {
    const at: number[] = [];
    for (let second = 0; second < seconds; second++, now += 1_000) {
      asked = new Set();
      const { errors } = await engine.poll();
      expect(asked).toContain(keyText(OTHER));
      expect([...errors.keys()]).toEqual(hasError ? [NAME] : []);
      if (asked.has(NAME)) at.push(second);
    }
    return at;
  };
  return { remote, disk, engine, requestedAt };
}

it('is requested after pauses that double, from a second on, and shows its error in between', async () => {
  const { remote, engine, requestedAt } = setUp();
  remote.poisoned.add(NAME);
  expect(await requestedAt(40)).toEqual([0, 1, 3, 7, 15, 31]);
  expect(engine.store.liveFiles.get(JOB, STDOUT)?.error).not.toBe(null);
});

it('has the first pause again after a success', async () => {
  const { remote, requestedAt } = setUp();
  remote.poisoned.add(NAME);
  expect(await requestedAt(8)).toEqual([0, 1, 3, 7]);
  remote.poisoned.clear();
  expect(await requestedAt(7)).toEqual([]);
  expect(await requestedAt(2, false)).toEqual([0, 1]);
  remote.poisoned.add(NAME);
  expect(await requestedAt(4)).toEqual([0, 1, 3]);
});

it('is requested at each poll while only this machine fails, and has no pause afterwards', async () => {
  const { remote, disk, requestedAt } = setUp();
  remote.poisoned.add(NAME);
  expect(await requestedAt(3)).toEqual([0, 1]);
  remote.poisoned.clear();
  disk.beforeStep = async (step) => {
    if (step === 'write') throw Object.assign(new Error('EIO: write'), { code: 'EIO', syscall: 'write', errno: -5 });
  };
  remote.files.delete(keyText(OTHER));
  expect(await requestedAt(3)).toEqual([0, 1, 2]);
  disk.beforeStep = async () => {};
  remote.poisoned.add(NAME);
  expect(await requestedAt(4)).toEqual([0, 1, 3]);
});
