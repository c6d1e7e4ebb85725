import { describe, expect, test } from 'vitest';
import type { PartRequest, Parts } from '../../../src/agent/ports/server.ts';
import { type ErrorCode, JobtailError } from '../../../src/errors.ts';
import { type JobId, keyText, type TaskId } from '../../../src/job.ts';
import { BatchReader } from '../../../src/remote/text/batch.ts';
import { JOB } from '../../support/engine.ts';
import { ModelRemote } from '../../support/model-remote.ts';

/** Takes so many files a call. */
class LimitedRemote extends ModelRemote {
  most = Number.POSITIVE_INFINITY;

  override async readParts(jobId: JobId, wanted: readonly PartRequest[], signal: AbortSignal): Promise<Parts> {
    if (wanted.length > this.most) {
      this.calls++;
      throw new JobtailError('request-too-long', 'the request is too long');
    }
    return super.readParts(jobId, wanted, signal);
  }
}

const WANTED = Array.from({ length: 8 }, (_, task): PartRequest => {
  return { taskId: String(task) as TaskId, file: 'stdout', offset: 0 };
});

function setUp() {
  const remote = new LimitedRemote();
  for (const request of WANTED) remote.files.set(keyText(request), Buffer.from('text'));
  const batches = new BatchReader(JOB, { files: Number.POSITIVE_INFINITY });
  return {
    remote,
    batches,
    /** What one read brings, and how many calls it took. */
    read: async (from: BatchReader = batches, wanted: readonly PartRequest[] = WANTED, isFirst = true) => {
      const before = remote.calls;
      try {
        const { parts, errors } = await from.read(remote, { wanted, isFirst }, new AbortController().signal);
        const begun: string[] = [];
        for (const { taskId, relativePath, content, isBeginning } of parts.values()) {
          if (isBeginning && content.length > 0) begun.push(`${taskId}${relativePath} ${await content.read(0, 1)}`);
          await content.release();
        }
        const calls = remote.calls - before;
        const names = begun.length > 0 ? begun.sort() : undefined;
        return { read: [...parts.keys()].sort(), failed: [...errors.keys()], begun: names, calls };
      } catch (error) {
        return { thrown: error instanceof JobtailError ? error.code : error, calls: remote.calls - before };
      } finally {
        expect(remote.held).toBe(0);
      }
    },
  };
}

/** As one heavy text fails behind a proxy, or all where nothing is answered. */
const DOUBTFUL: readonly ErrorCode[] = ['timeout', 'interrupted', 'unavailable'];

/** The same, if a thousand bytes of text are enough. */
const CUT = WANTED.map((request) => ({ ...request, enoughBytes: 1_000 }));
const ALL = WANTED.map(keyText);
const without = (...names: string[]) => ALL.filter((name) => !names.includes(name));

describe('a call for many files', () => {
  test('is one call when all is well', async () => {
    const { read } = setUp();
    expect(await read()).toEqual({ read: ALL, failed: [], calls: 1 });
  });

  test('that fails half-way leaves no text of its first half', async () => {
    const { remote, read } = setUp();
    Object.assign(remote, {
      divide: (_: JobId, requests: readonly PartRequest[]) => [requests.slice(0, 4), requests.slice(4)],
    });
    const readParts = remote.readParts.bind(remote);
    let calls = 0;
    remote.readParts = async (...args) => {
      calls += 1;
      if (calls === 2) throw new JobtailError('unreachable', 'connection refused');
      return await readParts(...args);
    };
    expect(await read()).toMatchObject({ thrown: 'unreachable' });
    expect(calls).toBe(2);
  });

  test('is taken apart until the poisoned files are found; the others go on, and next time cost two calls more', async () => {
    const { remote, read } = setUp();
    remote.poisoned.add('3/stdout').add('6/stdout');
    expect(await read()).toMatchObject({ read: without('3/stdout', '6/stdout'), failed: ['3/stdout', '6/stdout'] });
    expect(await read()).toEqual({
      read: without('3/stdout', '6/stdout'),
      failed: ['3/stdout', '6/stdout'],
      // For each of them its text, and whether it can be read at all.
      calls: 5,
    });
    remote.poisoned.clear();
    expect(await read()).toEqual({ read: ALL, failed: [], calls: 3 });
    expect(await read()).toEqual({ read: ALL, failed: [], calls: 1 });
  });

  test('of a task fails twice for one file whose text cannot be sent: for all, and for that file alone', async () => {
    const { remote, read } = setUp();
    remote.poisoned.add('1/stdout');
    const readParts = remote.readParts.bind(remote);
    const failed: number[] = [];
    remote.readParts = async (job, wanted, signal) =>
      await readParts(job, wanted, signal).catch((error: unknown) => {
        if (wanted.every(({ offset }) => offset === 0)) failed.push(wanted.length);
        throw error;
      });
    const four = WANTED.slice(0, 4);
    expect(await read(undefined, four)).toMatchObject({ read: ['0/stdout', '2/stdout', '3/stdout'] });
    expect(failed).toEqual([4, 1]);
  });

  test.each([
    ['one long text', { 3: 'a' }, 1 + 2],
    ['two long texts', { 1: 'a', 5: 'b' }, 2 * 2 + 1],
    ['long texts that begin alike', { 1: 'a', 5: 'a' }, 2 * 2 + 1 + 2],
  ])('with %s requests none of them again, unless it is unclear whose it is', async (_, long, calls) => {
    const { remote, read } = setUp();
    for (const [task, letter] of Object.entries(long)) remote.files.set(`${task}/stdout`, Buffer.alloc(9_000, letter));
    const begun = Object.entries(long).map(([task, letter]) => `${task}/stdout.txt ${letter}`);
    expect(await read(undefined, CUT)).toEqual({ read: ALL, failed: [], begun, calls });
  });

  test('whose text was cut gives it to no file that was made meanwhile', async () => {
    const { remote, read } = setUp();
    remote.files.delete('7/stdout');
    remote.files.set('3/stdout', Buffer.alloc(9_000, 'a'));
    // The last file comes first.
    remote.beforeCall = () => void (remote.calls === 1 && remote.files.set('7/stdout', Buffer.from('text')));
    expect(await read(undefined, CUT)).toMatchObject({ read: ALL, begun: ['3/stdout.txt a'] });
  });

  test('is not taken apart when the service as a whole fails', async () => {
    const { remote, read } = setUp();
    remote.failures.push(new JobtailError('unreachable', 'nobody listens'));
    expect(await read()).toEqual({ thrown: 'unreachable', calls: 1 });
    expect(await read()).toEqual({ read: ALL, failed: [], calls: 1 });
  });

  test.each(DOUBTFUL)('that fails with %s costs the next read one short call, and later ones none', async (code) => {
    const { remote, read } = setUp();
    for (const times of [1, 2]) {
      remote.failures.push(...Array(times).fill(new JobtailError(code, 'no answer')));
      for (let time = 0; time < times; time++) expect(await read()).toEqual({ thrown: code, calls: 1 });
      expect(await read()).toEqual({ read: ALL, failed: [], calls: 2 });
      expect(await read()).toEqual({ read: ALL, failed: [], calls: 1 });
    }
  });

  test.each(DOUBTFUL)('of which one text alone fails with %s reads the others at the second time', async (code) => {
    const { remote, read } = setUp();
    const readParts = remote.readParts.bind(remote);
    remote.readParts = async (job, wanted, signal) => {
      if (wanted.some(({ taskId, offset }) => taskId === '3' && offset === 0))
        throw new JobtailError(code, 'too heavy');
      return await readParts(job, wanted, signal);
    };
    expect(await read()).toMatchObject({ thrown: code });
    for (const _ of [1, 2, 3])
      expect(await read()).toMatchObject({ read: without('3/stdout').concat('3/stdout').sort(), failed: ['3/stdout'] });
  });
});

describe('a job of which every file fails', () => {
  test('costs two calls a poll: one file by itself shows that it fails', async () => {
    const { remote, read } = setUp();
    for (const name of ALL) remote.poisoned.add(name);
    for (let polls = 0; polls < ALL.length / 2; polls++) expect(await read()).toMatchObject({ thrown: 'fault' });
    // Its text, and whether it can be read at all.
    for (let polls = 0; polls < 10; polls++) expect(await read()).toEqual({ thrown: 'fault', calls: 2 });
    remote.poisoned.clear();
    expect(await read()).toEqual({ read: ALL, failed: [], calls: ALL.length });
    expect(await read()).toEqual({ read: ALL, failed: [], calls: 1 });
  });

  test('is found out when only some of them still do', async () => {
    const { remote, read } = setUp();
    for (const name of ALL) remote.poisoned.add(name);
    await read();
    remote.poisoned.delete('5/stdout');
    const polls = [];
    for (let poll = 0; poll < ALL.length; poll++) polls.push(await read());
    expect(polls.filter((poll) => poll.read?.includes('5/stdout'))).not.toEqual([]);
  });

  test('is not judged by a later question of a poll', async () => {
    const { remote, batches, read } = setUp();
    remote.poisoned.add('2/stdout');
    await read();
    const later = WANTED.slice(2, 3);
    expect(await read(batches, later, false)).toMatchObject({ read: [], failed: ['2/stdout'] });
    expect(await read()).toMatchObject({ read: without('2/stdout') });
  });
});

describe('a request that is too long', () => {
  test('makes the batches smaller', async () => {
    const { remote, read } = setUp();
    remote.most = 1;
    await read();
    expect(await read()).toEqual({ read: ALL, failed: [], calls: 8 });
  });

  test('of one file that is always refused makes the batches of the others no smaller', async () => {
    const { remote, read } = setUp();
    const readParts = remote.readParts.bind(remote);
    remote.readParts = async (job, wanted, signal) => {
      if (wanted.every(({ taskId }) => taskId !== '3')) return await readParts(job, wanted, signal);
      remote.calls += 1;
      throw new JobtailError('request-too-long', 'the request is too long');
    };
    await read();
    // The others, the text of that file, and whether it can be read at all.
    expect(await read()).toEqual({ read: without('3/stdout'), failed: ['3/stdout'], calls: 3 });
  });

  test('is not taken for it when a fault comes now and then', async () => {
    const { remote, read } = setUp();
    for (let times = 0; times < 5; times++) {
      remote.failures.push(new JobtailError('fault', 'by chance'));
      expect(await read()).toEqual({ read: ALL, failed: [], calls: 5 });
      expect(await read()).toEqual({ read: ALL, failed: [], calls: 1 });
    }
  });
});
