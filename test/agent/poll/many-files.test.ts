/** Polls of a job with very many live files: few mirrors are open at a time, and what fails fails by itself. */
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { JobtailError } from '../../../src/errors.ts';
import { keyText, type LiveFileKey, type TaskId } from '../../../src/job.ts';
import { Engine } from '../../support/engine.ts';
import { ModelDisk } from '../../support/model-disk.ts';
import { ModelRemote } from '../../support/model-remote.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

/** Knows how many files were open at most. */
class OpenFiles extends ModelDisk {
  most = 0;

  override async open(...args: Parameters<ModelDisk['open']>): ReturnType<ModelDisk['open']> {
    const handle = await super.open(...args);
    this.most = Math.max(this.most, this.openHandles);
    return handle;
  }
}

const FILES = Array.from({ length: 2_100 }, (_, task): LiveFileKey => {
  return { taskId: String(10_000 + task) as TaskId, file: 'stdout' };
});
const NAMES = FILES.map(keyText);
/** One of those that are polled together, each; the others are not there yet. */
const WRITTEN = [NAMES[500], NAMES[1_500], NAMES[2_050]] as string[];
const LINE = 'a line\n';

let remote: ModelRemote;
let disk: OpenFiles;
let engine: Engine;
let time: number;

beforeEach(() => {
  time = 1_000_000;
  remote = new ModelRemote();
  disk = new OpenFiles();
  engine = new Engine({ directory: temporaryDirectory(), remote, disk, now: () => time });
  onTestFinished(() => engine.kill());
  engine.store.transaction(() => engine.watch(FILES));
  for (const name of WRITTEN) remote.files.set(name, Buffer.from(LINE));
});

it('opens a thousand of their mirrors at a time', async () => {
  const { appended, ends } = await engine.poll();
  expect({ appended, ends: ends.size }).toEqual({ appended: 3 * LINE.length, ends: NAMES.length });
  expect(disk.most).toBeLessThanOrEqual(1_000 + WRITTEN.length);
  const before = remote.calls;
  expect(await engine.poll()).toMatchObject({ appended: 0 });
  expect(remote.calls - before).toBe(3);
});

it('goes on with the others where those that come first cannot be read', async () => {
  for (const name of NAMES.slice(0, 1_000)) remote.poisoned.add(name);
  await expect(engine.poll()).rejects.toMatchObject({ code: 'fault' });
  const { appended, errors } = await engine.poll();
  expect({ appended, errors: errors.size }).toEqual({ appended: 2 * LINE.length, errors: 1_000 });
  remote.poisoned.clear();
  time += 60_000;
  expect(await engine.poll()).toMatchObject({ appended: LINE.length, errors: new Map() });
});

it('reports what came before a group that breaks off', async () => {
  remote.poisoned.add(NAMES[3] as string);
  const readParts = remote.readParts.bind(remote);
  let isAway = true;
  remote.readParts = async (jobId, wanted, signal) => {
    if (isAway && wanted.some((request) => keyText(request) === NAMES[1_500]))
      throw new JobtailError('unreachable', 'connection refused');
    return await readParts(jobId, wanted, signal);
  };
  const { appended, ends, errors, failure } = await engine.poll();
  expect({ appended, ends: ends.size, errors: [...errors.keys()], code: failure?.code }).toEqual({
    ...{ appended: LINE.length, ends: 999, errors: [NAMES[3]], code: 'unreachable' },
  });
  isAway = false;
  time += 60_000;
  const after = await engine.poll();
  expect({ appended: after.appended, failure: after.failure }).toEqual({
    appended: 2 * LINE.length,
    failure: undefined,
  });
});

it('asks one call for one file as long as none can be read', async () => {
  for (const name of NAMES) remote.poisoned.add(name);
  await expect(engine.poll()).rejects.toMatchObject({ code: 'fault' });
  const before = remote.calls;
  for (let polls = 0; polls < 5; polls += 1) await expect(engine.poll()).rejects.toMatchObject({ code: 'fault' });
  expect(remote.calls - before).toBe(5);
  remote.poisoned.clear();
  expect((await engine.poll()).appended).toBe(3 * LINE.length);
});
