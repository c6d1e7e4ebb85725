/** The search for tasks by the file-transfer service alone: how many calls it takes, and what is learned by it. */
import { describe, expect, it, onTestFinished } from 'vitest';
import type { PartRequest, Parts } from '../../../src/agent/ports/server.ts';
import { candidatesOf } from '../../../src/agent/tasks/probe.ts';
import { saveReported, TaskSearch } from '../../../src/agent/tasks/task-search.ts';
import { JobtailError } from '../../../src/errors.ts';
import { type JobId, keyText, LIVE_FILE_NAMES, type TaskId } from '../../../src/job.ts';
import { logLine } from '../../../src/printable.ts';
import { Store } from '../../../src/store/store.ts';
import { JOB, newState } from '../../support/engine.ts';
import { HeldClock } from '../../support/held-clock.ts';
import { ModelRemote } from '../../support/model-remote.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

const { signal } = new AbortController();
const FAULT = () => new JobtailError('fault', 'no such task');

/** A server with the habits that matter here. */
class TaskRemote extends ModelRemote {
  maxEntries = Number.POSITIVE_INFINITY;
  strangers: 'left-out' | 'fault' | 'answered' = 'left-out';
  listed: string[] = [];
  /** Ids that were asked about, call by call. */
  readonly asked: string[][] = [];
  listings = 0;

  /** A task with a standard output; listed as that of a specification. */
  task(taskId: string, specification?: string): void {
    this.files.set(keyText({ taskId: taskId as TaskId, file: 'stdout' }), Buffer.from('a line\n'));
    if (specification !== undefined) this.listed.push(`/${specification}/stdout.txt`);
  }

  override async readParts(jobId: JobId, wanted: readonly PartRequest[], stop: AbortSignal): Promise<Parts> {
    this.asked.push(wanted.map(({ taskId }) => taskId));
    if (wanted.length > this.maxEntries) throw FAULT();
    const tasks = new Set([...this.files.keys()].map((name) => name.split('/')[0]));
    const strangers = wanted.filter(({ taskId }) => !tasks.has(taskId));
    if (this.strangers === 'fault' && strangers.length > 0) throw FAULT();
    if (this.strangers === 'answered')
      for (const stranger of strangers) this.files.set(keyText(stranger), Buffer.alloc(0));
    return await super.readParts(jobId, wanted, stop);
  }

  override async listChangedFiles(): Promise<readonly string[]> {
    this.listings += 1;
    return this.listed;
  }
}

function setUp(
  habits: Partial<Pick<TaskRemote, 'maxEntries' | 'strangers'>> = {},
  hasJobService = false,
  batchFiles = Number.POSITIVE_INFINITY,
) {
  const clock = new HeldClock();
  const remote = Object.assign(new TaskRemote(), habits);
  const store = new Store({ directory: newState(temporaryDirectory()), service: 'x', owner: true, now: clock.now });
  onTestFinished(() => store.close());
  const said: string[] = [];
  const say = (fields: object, message: string) => void said.push(logLine({ ...fields }, message));
  const log = { debug: () => {}, info: say, warn: say, error: say };
  const onFound = (tasks: number, by: string) => void said.push(`${tasks} by ${by}`);
  const follow = (jobId: JobId) => {
    const order = { files: LIVE_FILE_NAMES, results: false, settleAfterMs: null, source: 'command' } as const;
    store.transaction(() => store.jobs.watch({ ...order, jobId, tasks: null }, clock.now()));
    const search = new TaskSearch(jobId, {
      ...{ store, log, clock, remote, onFound },
      batchLimit: { files: batchFiles },
      hasJobService,
    });
    const probe = (isListed = false) => search.probe(isListed, signal);
    const tasks = () => store.taskSearches.knownTasks(jobId).toSorted();
    return { search, probe, tasks };
  };
  const report = (ids: readonly string[]) => saveReported(JOB, ids as TaskId[], { store, log, clock });
  return { clock, remote, store, said, follow, report, ...follow(JOB) };
}

describe('a probe', () => {
  it('finds tasks with the numbers of the listing by one call', async () => {
    const { remote, probe, tasks } = setUp();
    for (const task of ['9001', '9002', '9003']) remote.task(task, task);
    expect(await probe()).toEqual({ found: 3, nextMs: 600_000 });
    expect(tasks()).toEqual(['9001', '9002', '9003']);
    expect(remote.asked).toHaveLength(1);
    expect(remote.held, 'contents that were not given back').toBe(0);
  });

  it('learns what leads from specifications to tasks, and asks for that first the next time', async () => {
    const { remote, probe, tasks, follow, store } = setUp();
    for (const [task = '', specification] of [
      ['10015', '10003'],
      ['9997', '9985'],
      ['10002', '9990'],
    ])
      remote.task(task, specification);
    expect(await probe()).toMatchObject({ found: 3 });
    expect(tasks()).toEqual(['10002', '10015', '9997']);
    expect(store.capabilities.get('task-shift')).toBe('12');
    const calls = remote.asked.length;
    const other = follow('777' as JobId);
    remote.listed = [];
    remote.task('900012', '900000');
    expect(await other.probe()).toEqual({ found: 1, nextMs: 600_000 });
    expect(remote.asked.length).toBe(calls + 1);
    expect(remote.asked.at(-1)?.[0]).toBe('900012');
  });

  it('asks for 64 numbers of the listing first, then for what is near to the ends, and for one of the rest each time', () => {
    const thousands = Array.from({ length: 66 }, (_, index) => 1_000n * BigInt(((index + 32) % 66) + 1));
    const candidates = candidatesOf({ jobId: '5' as JobId, specifications: thousands, shift: 30n, known: [] });
    const next = (count: number) => Array.from({ length: count }, () => candidates.next().value);
    for (const shift of [30n, 0n]) expect(next(64)).toEqual(thousands.slice(0, 64).map((id) => String(id + shift)));
    expect(next(13).join(' ')).toBe('5 31030 66031 66029 1031 1029 66001 65999 1001 999 6 4 32030');
    expect(next(22).filter((id) => id?.startsWith('3'))).toEqual(['3', '31000', '32000']);
    // A known task shows a shift of its own.
    const known = ['1030' as TaskId];
    const others = candidatesOf({ jobId: '5' as JobId, specifications: [5_000n, 1_000n], shift: undefined, known });
    expect([1, 2, 3].map(() => others.next().value)).toEqual(['5000', '1000', '5030']);
  });

  it('makes few calls, whether it finds anything or not', async () => {
    for (const strangers of ['left-out', 'fault'] as const) {
      for (const maxEntries of [1, 2, 5, 100, 1_000]) {
        const { remote, probe } = setUp({ strangers, maxEntries });
        remote.listed = ['/70001/a'];
        for (let count = 0; count < 12; count++) {
          const before = remote.asked.length;
          await probe();
          expect(remote.asked.length - before, `${strangers}, ${maxEntries} entries`).toBeLessThanOrEqual(9);
          expect(new Set(remote.asked.slice(before).flat()).size, 'ids in a round').toBeLessThanOrEqual(320);
        }
      }
    }
  });

  it('finds thousands of tasks whose ids are near to those of the listing, round by round', async () => {
    const { remote, probe, tasks } = setUp();
    for (let one = 0; one < 3_000; one++) remote.task(String(600 + 2 * one), String(601 + 2 * one));
    let rounds = 0;
    for (; tasks().length < 3_000 && rounds < 20; rounds++)
      expect(await probe()).toMatchObject({ nextMs: expect.any(Number) });
    expect(tasks()).toHaveLength(3_000);
    expect(remote.asked.length).toBeLessThanOrEqual(8 * rounds);
  });

  it('finds what is near in the end, however few entries a call may have', async () => {
    for (const maxEntries of [1, 2, 5]) {
      const { remote, probe, tasks } = setUp({ maxEntries });
      remote.task('70030', '70001');
      for (let count = 0; count < 60 && tasks().length === 0; count++) await probe();
      expect(tasks()).toEqual(['70030']);
    }
  });

  it.each([
    ['left-out', 20, 6_626],
    ['fault', 0, 64],
  ] as const)(
    'of ids that are %s requests each less likely one again, once all were',
    async (strangers, likely, all) => {
      const { remote, probe, store } = setUp({ strangers });
      remote.listed = ['/70001/a'];
      store.capabilities.set('strange-tasks', strangers);
      for (let count = 0; count < 48; count++) await probe();
      const first = new Set(remote.asked.flat().slice(0, likely));
      // Where an id of another job fails a call, each is requested by itself.
      const others = (likely > 0 ? remote.asked : remote.asked.filter(({ length }) => length === 1)).flat();
      const asked = others.filter((id) => !first.has(id));
      expect(new Set(asked).size).toBe(all);
      expect(asked.slice(all, 2 * all)).toEqual(asked.slice(0, all));
    },
  );

  it('requests each file of each id in some cycles, so that a task with only one of them is found', async () => {
    const { remote, probe, store } = setUp({ strangers: 'fault' });
    remote.listed = ['/70001/a'];
    store.capabilities.set('strange-tasks', 'fault');
    const asked = new Set<string>();
    const read = remote.readParts.bind(remote);
    remote.readParts = async (...call) => {
      if (call[1].length === 1) for (const one of call[1]) asked.add(keyText(one));
      return await read(...call);
    };
    for (let count = 0; count < 60; count++) await probe();
    expect(asked.size).toBe(64 * LIVE_FILE_NAMES.length);
  });

  it('finds what is near where ids of others fail a call', async () => {
    const { remote, probe, tasks, store } = setUp({ strangers: 'fault' });
    remote.task('70004', '70001');
    remote.task('70005', '70002');
    let rounds = 0;
    for (; rounds < 12 && tasks().length < 2; rounds++) await probe();
    expect(tasks()).toEqual(['70004', '70005']);
    expect(store.capabilities.get('strange-tasks')).toBe('fault');
    expect(
      remote.asked.filter(({ length }) => length > 1),
      'each round begins with several',
    ).toHaveLength(rounds + 1);
    for (let one = 70_006; one < 70_018; one++) remote.task(String(one), String(one));
    const before = remote.asked.length;
    await probe();
    expect(remote.asked.slice(before).map(({ length }) => length)).toEqual([4, 16, ...Array(6).fill(1)]);
  });

  it('believes no server that answers for whatever id', async () => {
    const { remote, probe, tasks, said, store } = setUp({ strangers: 'answered' });
    remote.task('70001', '70001');
    expect(await probe()).toMatchObject({ found: 0 });
    expect(tasks()).toEqual([]);
    expect(remote.asked.at(-1), 'an id that no database reaches').toEqual([`${2n ** 62n + 1n}`]);
    expect(store.taskSearches.get(JOB)?.hint).toContain('whatever id');
    expect(said).toContainEqual(expect.stringContaining('not found'));
  });

  it('finds a task with the number of its directory, though those of another job differ by a shift', async () => {
    const { remote, probe, tasks, store } = setUp();
    store.capabilities.set('task-shift', '30');
    for (const directory of ['10000', '50000', '90000']) remote.listed.push(`/${directory}/a`);
    remote.task('50000');
    expect(await probe()).toMatchObject({ found: 1 });
    expect(tasks()).toEqual(['50000']);
  });

  it('fails with the first failure of a call for one id, if no call is answered', async () => {
    const { remote, probe } = setUp();
    let calls = 0;
    remote.readParts = async () => {
      calls += 1;
      if (calls === 12) return { parts: [], refused: 0 };
      throw new JobtailError('http-status', `failure ${calls}`);
    };
    // Four ids, two of them, and each by itself.
    await expect(probe()).rejects.toThrow('failure 3');
    expect([await probe(), calls]).toEqual([{ found: 0, nextMs: 5_000 }, 16]);
  });

  it('learns that a stranger fails a call, also if it found all that it asked for', async () => {
    const { remote, probe, store } = setUp({ strangers: 'fault' });
    remote.task('9001', '9001');
    store.capabilities.set('probe-entries', '1');
    expect(await probe()).toMatchObject({ found: 1 });
    expect(store.capabilities.get('strange-tasks')).toBe('fault');
  });

  it('learns nothing of a stranger while the service is away', async () => {
    const { remote, probe, tasks, store } = setUp();
    remote.task('9001', '9001');
    const read = remote.readParts.bind(remote);
    remote.readParts = async (...call) => {
      if (call[1][0]?.taskId !== '9001') throw new JobtailError('unavailable', 'it is down');
      return await read(...call);
    };
    // Of one id, so that the next call is that for a stranger.
    remote.maxEntries = 1;
    store.capabilities.set('probe-entries', '1');
    await expect(probe()).rejects.toMatchObject({ code: 'unavailable' });
    expect([tasks(), store.capabilities.get('strange-tasks')]).toEqual([[], undefined]);
  });
});

describe('the rounds of a job', () => {
  it.each([false, true])(
    'come rarer and rarer while nothing is found, and say what helps: a job service: %s',
    async (has) => {
      const { remote, probe, said, store, clock } = setUp({}, has);
      remote.listed = ['/70001/a'];
      const pauses: (number | null)[] = [];
      const hints: (string | null | undefined)[] = [];
      for (let count = 0; count < 9; count++) {
        const { nextMs } = await probe();
        pauses.push(nextMs);
        const { hint, nextSearchAt } = store.taskSearches.get(JOB) ?? {};
        hints.push(hint);
        expect(nextSearchAt).toBe(clock.now() + Number(nextMs));
      }
      expect(pauses).toEqual([5, 10, 20, 40, 80, 160, 320, 600, 600].map((seconds) => seconds * 1_000));
      const help = `name them (agent watch JOB --task ID)${has ? '' : ', or set service.jobsUrl'}: their ids follow no rule that is known`;
      expect(hints).toEqual([...Array(3).fill(null), ...Array(6).fill(help)]);
      expect(said).toEqual([`tasks not found jobId=501 (${help})`]);
      // Nothing is known to be missing where nothing is listed.
      remote.listed = [];
      await probe();
      expect(store.taskSearches.get(JOB)).toMatchObject({ hint: null, foundBy: null, fruitless: 10 });
      // One of two that is found has the other one searched for soon.
      for (const file of LIVE_FILE_NAMES) remote.files.set(`70001/${file}`, Buffer.from('a line\n'));
      remote.listed = ['/70001/a', '/70002/a'];
      expect(await probe()).toEqual({ found: 1, nextMs: 5_000 });
    },
  );

  it('store what was found, and search no more once that is all, until another directory is listed', async () => {
    const { remote, search, probe, store, said, tasks } = setUp();
    const row = () => {
      const { foundBy, fruitless, hint, nextSearchAt } = store.taskSearches.get(JOB) ?? {};
      return { foundBy, fruitless, hint, isDue: nextSearchAt !== null };
    };
    remote.listed = ['/70001/a'];
    for (let count = 0; count < 6; count++) await probe();
    expect(row()).toMatchObject({ foundBy: null, fruitless: 6, isDue: true });
    said.length = 0;
    remote.listed = ['/70003/a'];
    for (const task of ['70009', '70010']) remote.task(task, task);
    expect(await probe()).toEqual({ found: 2, nextMs: 5_000 });
    expect(row()).toEqual({ foundBy: 'probes', fruitless: 0, hint: null, isDue: true });
    remote.listed.shift();
    await probe();
    const all = { foundBy: 'probes', fruitless: 0, hint: null, isDue: false };
    expect([row(), remote.listings]).toEqual([all, 8]);
    expect(said).toEqual(['tasks found jobId=501 found=2 by=probes tasks="70009; 70010"', '2 by probes']);
    await probe();
    expect(row()).toEqual(all);
    remote.task('70011', '70002');
    expect([await search.listed([]), await search.listed(remote.listed), await search.listed(remote.listed)]).toEqual([
      ...[true, true, false],
    ]);
    expect(await search.listed(remote.listed.slice(1))).toBe(true);
    await search.listed(remote.listed);
    expect(await probe(true)).toEqual({ found: 1, nextMs: null });
    expect(row()).toEqual(all);
    const { length } = remote.asked;
    expect(await search.listed([...remote.listed, '/70002/more'])).toBe(false);
    expect(await probe(true)).toEqual({ found: 0, nextMs: null });
    expect(remote.asked, 'no call once all are known').toHaveLength(length);
    expect([tasks(), remote.listings]).toEqual([['70009', '70010', '70011'], 9]);
  });

  it('begin at the first number, with a standard output, when another directory is listed', async () => {
    const { remote, search, probe } = setUp({ maxEntries: 2 });
    await search.listed(['/70001/a']);
    for (let count = 0; count < 7; count++) await probe(true);
    // Its id is the ninth: the rounds before have passed it, and the eighth one requests another file.
    remote.task('503', '90001');
    await search.listed(remote.listed);
    expect(await probe(true)).toMatchObject({ found: 1 });
  });

  it('find a task where nothing is listed, by calls of as many ids as a call may have', async () => {
    const { remote, search, probe, tasks } = setUp({}, false, 3);
    remote.task('503');
    expect([await search.listed([]), await search.listed([])], 'the first listing begins a search').toEqual([
      true,
      false,
    ]);
    expect(await probe()).toMatchObject({ found: 1 });
    expect(tasks()).toEqual(['503']);
    expect(new Set(remote.asked.map(({ length }) => length))).toEqual(new Set([3]));
  });

  it('request another file every other time, for a task may have no standard output', async () => {
    const { remote, probe, tasks } = setUp();
    remote.files.set('9001/stderr', Buffer.from('a line\n'));
    remote.listed = ['/9001/stderr.txt'];
    const found: number[] = [];
    for (let count = 0; count < 2; count++) found.push((await probe()).found);
    expect([found, tasks()]).toEqual([[0, 1], ['9001']]);
  });

  it.each([false, true])('are over when an order names the tasks, also during a round: %s', async (isDuring) => {
    const { remote, probe, tasks, store, clock } = setUp();
    remote.task('9001', '9001');
    const named = { tasks: ['7' as TaskId], files: LIVE_FILE_NAMES, results: false, settleAfterMs: null } as const;
    const watch = () =>
      store.transaction(() => store.jobs.watch({ ...named, jobId: JOB, source: 'command' }, clock.now()));
    if (isDuring) remote.onPartRequest = watch;
    else watch();
    expect(await probe()).toEqual({ found: 0, nextMs: null });
    expect([remote.asked.length, tasks()]).toEqual([isDuring ? 1 : 0, ['7']]);
  });

  it('are over while the job service names the tasks, and their hint with them', async () => {
    const { remote, probe, report, store, clock } = setUp();
    const row = () => store.taskSearches.get(JOB);
    remote.listed = ['/70001/a', '/70002/a'];
    for (const found of [1, 0]) {
      for (let count = 0; count < 5; count++) await probe();
      expect(row()?.hint).toContain('name them');
      clock.stepWall(1_000);
      expect(await report(['8'])).toBe(found);
      const none = { foundBy: 'job-service', fruitless: 0, nextSearchAt: null, hint: null };
      expect(row()).toMatchObject({ ...none, searchedAt: clock.now() });
      const before = row();
      clock.stepWall(1_000);
      await report(['8']);
      await report([]);
      expect(row(), 'nothing new is not stored').toEqual(before);
    }
  });
});

it('a job gets ten thousand tasks at most; the log names the first five of more, and counts the ignored ones', async () => {
  const { report, said, tasks } = setUp();
  const ids = Array.from({ length: 10_002 }, (_, index) => String(index + 1));
  const counts: number[] = [];
  for (const reported of [ids.slice(0, 2), ids, ids]) counts.push(await report(reported));
  expect(counts).toEqual([2, 9_998, 0]);
  expect(tasks()).toHaveLength(10_000);
  expect(said).toEqual([
    'tasks found jobId=501 found=2 by=job-service tasks="1; 2"',
    'tasks found jobId=501 found=9998 by=job-service tasks="3; 4; 5; 6; 7; ..."',
    'too many tasks jobId=501 ignored=2',
  ]);
});
