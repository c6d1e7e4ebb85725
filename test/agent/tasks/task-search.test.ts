/** The search for tasks by the file-transfer service alone: how many calls it takes, and what is learned by it. */
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { PartRequest, Parts } from '../../../src/agent/ports/server.ts';
import { candidatesOf } from '../../../src/agent/tasks/probe.ts';
import { saveReported, TaskSearch } from '../../../src/agent/tasks/task-search.ts';
import { type ErrorCode, JobtailError } from '../../../src/errors.ts';
import { type JobId, keyText, LIVE_FILE_NAMES, type TaskId } from '../../../src/job.ts';
import { logLine } from '../../../src/printable.ts';
import { Store } from '../../../src/store/store.ts';
import { JOB, newState } from '../../support/engine.ts';
import { expectCases } from '../../support/errors.ts';
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
  /** Files of ids that were asked about by themselves. */
  readonly alone = new Set<string>();

  /** A task with a standard output; listed as that of a specification. */
  task(taskId: string, specification?: string): void {
    this.files.set(keyText({ taskId: taskId as TaskId, file: 'stdout' }), Buffer.from('a line\n'));
    if (specification !== undefined) this.listed.push(`/${specification}/stdout.txt`);
  }

  override async readParts(jobId: JobId, wanted: readonly PartRequest[], stop: AbortSignal): Promise<Parts> {
    this.asked.push(wanted.map(({ taskId }) => taskId));
    if (wanted.length === 1) for (const one of wanted) this.alone.add(keyText(one));
    if (wanted.length > this.maxEntries) throw FAULT();
    const tasks = new Set([...this.files.keys()].map((name) => name.split('/')[0]));
    const strangers = wanted.filter(({ taskId }) => !tasks.has(taskId));
    if (this.strangers === 'fault' && strangers.length > 0) throw FAULT();
    if (this.strangers === 'answered')
      for (const stranger of strangers) this.files.set(keyText(stranger), Buffer.alloc(0));
    return await super.readParts(jobId, wanted, stop);
  }

  override async listChangedFiles(...call: Parameters<ModelRemote['listChangedFiles']>): Promise<readonly string[]> {
    await super.listChangedFiles(...call);
    return this.listed;
  }
}

interface Habits extends Partial<Pick<TaskRemote, 'maxEntries' | 'strangers'>> {
  readonly hasJobService?: boolean;
  readonly batchFiles?: number;
}

function setUp({ hasJobService = false, batchFiles = Number.POSITIVE_INFINITY, ...habits }: Habits = {}) {
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

/** The steps of task-search.txt: what the server has, lists and answers, and the rounds of a search. */
async function searched(written: string): Promise<string[]> {
  const steps = written.split('; ');
  const place = setUp(steps[0]?.startsWith('{') ? (JSON.parse(steps.shift() ?? '') as Habits) : {});
  const { remote, store, clock, said } = place;
  const startedAt = clock.now();
  const result: string[] = [];
  let before: Record<string, string> = {};
  let { search, probe, tasks } = place;
  let jobId = JOB;
  const state = () => {
    const row = store.taskSearches.get(jobId);
    const nextMs = row?.nextSearchAt == null ? null : row.nextSearchAt - clock.now();
    const searched = row?.searchedAt == null ? 'never' : row.searchedAt - startedAt;
    const names = ['task-shift', 'strange-tasks', 'probe-entries'];
    return {
      tasks: tasks().join(' '),
      row:
        row === undefined
          ? ''
          : `${row.foundBy}, fruitless ${row.fruitless}, next ${nextMs}, searched ${searched}, hint ${row.hint}`,
      known: names.flatMap((name) => store.capabilities.get(name) ?? []).join(', '),
      said: said.join(', '),
    };
  };
  const round = async (isListed: boolean) => {
    const outcome = await probe(isListed).then(JSON.stringify, (thrown: JobtailError) => `thrown ${thrown.code}`);
    const calls = remote.asked.splice(0).map((ids) => `${ids.length} from ${ids[0]} to ${ids.at(-1)}`);
    expect(remote.held, 'contents that were not given back').toBe(0);
    return `${outcome}; ${remote.listings} listings; ${calls.join(', ')}`;
  };
  for (const step of steps) {
    const [word = '', ...rest] = step.split(' ');
    const [first = '', second] = rest;
    said.length = 0;
    if (word === 'probe' || word === 'rounds')
      for (let count = 0; count < Number(first || 1); count++)
        result.push(`${step}: ${await round(second === 'listed')}`);
    else if (word === 'listed') result.push(`${step}: ${await search.listed(rest)}`);
    else if (word === 'report') result.push(`${step}: ${await place.report(rest)}`);
    else if (word === 'task') remote.task(first, second);
    else if (word === 'file') remote.files.set(first, Buffer.from('a line\n'));
    else if (word === 'lists') remote.listed = rest;
    else if (word === 'fails')
      for (let count = 0; count < Number(second ?? 1); count++)
        remote.failures.push(new JobtailError(first as ErrorCode, 'it fails'));
    else if (word === 'ms') clock.stepWall(Number(first));
    else if (word === 'names') {
      // An order that names a task, also during the next call.
      const order = { tasks: [first as TaskId], files: LIVE_FILE_NAMES, results: false, settleAfterMs: null } as const;
      const watch = () =>
        store.transaction(() => store.jobs.watch({ ...order, jobId, source: 'command' }, clock.now()));
      if (second === 'during') remote.onPartRequest = watch;
      else watch();
    } else if (word === 'known') store.capabilities.set(first, second ?? '');
    else if (word === 'job') {
      jobId = first as JobId;
      ({ search, probe, tasks } = place.follow(jobId));
    } else throw new Error(`no step: ${step}`);
    const now = state();
    const changed = Object.entries(now).filter(([name, text]) => text !== (before[name] ?? ''));
    result.push(...changed.map(([name, text]) => `  ${name}: ${text}`));
    before = now;
  }
  return result;
}

it('each round of a search makes the calls, and finds and stores the tasks, that are written', async () => {
  await expectCases(path.join(import.meta.dirname, 'task-search.txt'), searched);
});

describe('a probe', () => {
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

  it.each([
    ['left-out', 20, 6_626, 0],
    // So that a task with only one file is found.
    ['fault', 0, 64, 64 * LIVE_FILE_NAMES.length],
  ] as const)(
    'of ids that are %s requests each less likely one again, once all were, and in some cycles each file',
    async (strangers, likely, all, files) => {
      const { remote, probe, store } = setUp({ strangers });
      remote.listed = ['/70001/a'];
      store.capabilities.set('strange-tasks', strangers);
      for (let count = 0; count < 60; count++) await probe();
      expect(remote.alone.size).toBe(files);
      const first = new Set(remote.asked.flat().slice(0, likely));
      // Where an id of another job fails a call, each is requested by itself.
      const others = (likely > 0 ? remote.asked : remote.asked.filter(({ length }) => length === 1)).flat();
      const asked = others.filter((id) => !first.has(id));
      expect(new Set(asked).size).toBe(all);
      expect(asked.slice(all, 2 * all)).toEqual(asked.slice(0, all));
    },
  );

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
