/** Polls of a job with very many live files: few mirrors are open at a time, and what fails fails by itself. */
import { stat } from 'node:fs/promises';
import { expect, it, onTestFinished } from 'vitest';
import { MAX_TOGETHER } from '../../../src/agent/poll/poll.ts';
import { JobtailError } from '../../../src/errors.ts';
import { keyText, type LiveFileKey, type TaskId } from '../../../src/job.ts';
import { Engine, JOB, ModelDisk } from '../../support/engine.ts';
import { ModelRemote } from '../../support/model-remote.ts';
import { memoryDirectory, temporaryDirectory } from '../../support/temp-directory.ts';

/** Counts the files that were opened, and knows how many were open at most. */
class OpenFiles extends ModelDisk {
  opened = 0;
  most = 0;

  override async open(...args: Parameters<ModelDisk['open']>): ReturnType<ModelDisk['open']> {
    const handle = await super.open(...args);
    this.opened += 1;
    this.most = Math.max(this.most, this.openHandles);
    return handle;
  }
}

/** One byte is growth. */
const LINE = '\n';
const STUCK = { code: 'stuck', message: 'it is stuck', hint: null, since: 1 } as const;

/** So many groups of files that are polled together; one of each group is written. */
function setUp(together: number, groups = 2.1) {
  const keys = Array.from({ length: groups * together }, (_, task): LiveFileKey => {
    return { taskId: String(10_000 + task) as TaskId, file: 'stdout' };
  });
  const names = keys.map(keyText);
  const written = [0.5, 1.05, 2.05].flatMap((place) => names[Math.floor(place * together)] ?? []);
  const remote = new ModelRemote();
  const disk = new OpenFiles();
  const time = { now: 1_000_000 };
  // Thousands of new mirrors are flushed, one by one.
  const directory = temporaryDirectory(memoryDirectory());
  const maxTogether = together === MAX_TOGETHER ? {} : { maxTogether: together };
  const engine = new Engine({ directory, remote, disk, now: () => time.now, ...maxTogether });
  onTestFinished(() => engine.kill());
  engine.store.transaction(() => engine.watch(keys));
  for (const name of written) remote.files.set(name, Buffer.from(LINE));
  return { remote, disk, engine, names, written, time };
}

it('a poll of many files opens a thousand of their mirrors at a time', async () => {
  const { engine, names, disk, written, remote } = setUp(MAX_TOGETHER, 1.1);
  const { appended, outcomes } = await engine.poll();
  expect({ appended, outcomes: outcomes.size }).toEqual({ appended: 2 * LINE.length, outcomes: names.length });
  expect(disk.most).toBeLessThanOrEqual(1_000 + written.length);
  const before = remote.calls;
  expect(await engine.poll()).toMatchObject({ appended: 0 });
  expect(remote.calls - before).toBe(2);
});

it('a poll of many files waits for its turn before each group, and flushes few mirrors beside each other', async () => {
  const { engine, remote, disk, names } = setUp(40, 2);
  for (const name of names) remote.files.set(name, Buffer.from(LINE));
  const turns: (readonly [calls: number, opened: number])[] = [];
  const waitForTurn = async () => {
    // So many calls of the file system as the first mirrors would need.
    for (let turn = 0; turn < 50; turn += 1) await stat('.');
    turns.push([remote.calls, disk.opened]);
  };
  let [flushing, most] = [0, 0];
  disk.beforeStep = async (step) => {
    if (step !== 'datasync') return;
    flushing += 1;
    most = Math.max(most, flushing);
    await new Promise((resolve) => setImmediate(resolve));
    flushing -= 1;
  };
  expect((await engine.poll(false, undefined, waitForTurn)).appended).toBe(names.length * LINE.length);
  expect(turns).toEqual([
    [0, 0],
    [3, 40],
  ]);
  expect(most).toBe(4);
  await setUp(40, 0).engine.poll(false, undefined, waitForTurn);
  expect(turns).toHaveLength(2);
});

it('a poll of many files keeps what came before a group that breaks off', async () => {
  const { engine, names, remote, time } = setUp(40);
  remote.poisoned.add(names[3] as string);
  const readParts = remote.readParts.bind(remote);
  let isAway = true;
  remote.readParts = async (jobId, wanted, signal) => {
    if (isAway && wanted.some((request) => keyText(request) === names[45]))
      throw new JobtailError('unreachable', 'connection refused');
    return await readParts(jobId, wanted, signal);
  };
  await expect(engine.poll()).rejects.toMatchObject({ code: 'unreachable' });
  // The job grew, though its poll failed.
  expect(engine.grown).toEqual([LINE.length]);
  const { error } = engine.store.liveFiles.ofJob(JOB).find((row) => keyText(row) === names[3]) ?? {};
  expect(error?.code).toBe('fault');
  // What is known of a file stays until it is polled again.
  engine.store.liveFiles.setError(JOB, { taskId: '10045' as TaskId, file: 'stdout' }, STUCK);
  await expect(engine.poll()).rejects.toMatchObject({ code: 'unreachable' });
  const errorOf = (name = '') => engine.store.liveFiles.ofJob(JOB).find((row) => keyText(row) === name)?.error;
  expect(errorOf(names[45])).toEqual(STUCK);
  isAway = false;
  time.now += 60_000;
  expect((await engine.poll()).appended).toBe(2 * LINE.length);
  expect(engine.store.liveFiles.ofJob(JOB).filter(({ grownAt }) => grownAt === time.now)).toHaveLength(2);
  expect(errorOf(names[45])).toBeNull();
});

it('a poll that is stopped while one file is downloaded counts what another one grew by', async () => {
  const { engine, remote, names } = setUp(2, 1);
  const stop = new AbortController();
  const [text = '', raw = ''] = names;
  remote.files.set(text, Buffer.from(LINE));
  // No text shows these bytes.
  remote.files.set(raw, Buffer.from([0xff, 0xc3, 0]));
  remote.downloadFile = async () => {
    stop.abort();
    throw new JobtailError('aborted', 'it was stopped');
  };
  await expect(engine.poll(false, stop.signal)).rejects.toMatchObject({ code: 'aborted' });
  expect(engine.grown).toEqual([LINE.length]);
});

it('a poll of many files fails for a later group alone if none of its files can be read', async () => {
  const { engine, names, remote } = setUp(40, 2);
  for (const name of names.slice(40)) remote.poisoned.add(name);
  const { appended, errors } = await engine.poll();
  expect({ appended, errors: [...errors.keys()] }).toEqual({ appended: LINE.length, errors: names.slice(40) });
});

it('a poll of many files fails for one file alone if its second request fails', async () => {
  const { engine, remote, written } = setUp(4, 1);
  const [name = '', ...others] = written;
  for (const other of others) remote.files.delete(other);
  // A second response shows that no byte-order mark is missing.
  remote.onPartRequest = ({ offset }) => void (offset > 0 && remote.poisoned.add(name));
  expect([...(await engine.poll()).errors.keys()]).toEqual([name]);
});
