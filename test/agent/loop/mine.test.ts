/** All jobs of the user: which are taken, and how many. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { choiceOf, chooseMine, seenIn, seenStateOf } from '../../../src/agent/watch-mine.ts';
import { type JobInformation, jobTimeOf } from '../../../src/job-information.ts';
import type { WatchMineRow } from '../../../src/store/rows.ts';
import { Store } from '../../../src/store/store.ts';
import { newState } from '../../support/engine.ts';
import { at, jobOf } from '../../support/model-remote.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const NOW = Date.UTC(2026, 10, 5);
const ALL = { include: ['**'], exclude: [], maxAgeMs: DAY_MS, maxJobs: 200 };

describe('a job of the user', () => {
  const choose = async (rule: Partial<WatchMineRow>, ...jobs: JobInformation[]) =>
    (await chooseMine(jobs, { ...ALL, source: 'config', since: NOW - DAY_MS / 2, ...rule }, NOW)).map(({ id }) => id);

  it('is taken in the order in which there is something to see of it', async () => {
    const ended = (id: string, ms: number) => jobOf(id, 'Finished', { endTime: at(ms) });
    const jobs = [
      ended('1', NOW - 2 * MINUTE_MS),
      ended('2', NOW - MINUTE_MS),
      ended('7', NOW - MINUTE_MS),
      jobOf('3', 'Configuring'),
      jobOf('4', 'Queued'),
      jobOf('5', 'Somehow'),
      jobOf('6', 'Running'),
    ];
    expect(await choose({}, ...jobs)).toEqual(['6', '4', '5', '7', '2', '1']);
  });

  it('that ended before the rule began, and longer ago than it says, is left alone', async () => {
    const ended = (id: string, ms: number) => jobOf(id, 'Failed', { endTime: at(ms) });
    const jobs = [ended('1', NOW - DAY_MS - 1), ended('2', NOW - DAY_MS), ended('3', NOW)];
    expect(await choose({}, ...jobs)).toEqual(['3', '2']);
    expect(await choose({ since: NOW - 2 * DAY_MS }, ...jobs)).toEqual(['3', '2', '1']);
    expect(await choose({ maxAgeMs: 1 }, ...jobs)).toEqual(['3']);
  });

  it('is taken by its name', async () => {
    const named = (id: string, name: string | null) => jobOf(id, 'Running', { name });
    const jobs = [named('1', 'train-1'), named('2', 'train-test'), named('3', 'Train-3'), named('4', null)];
    const hostile = ['../x', '/train-5', './', '', '..', 'a/train-6', '\u001b[31m'].map((name, index) =>
      named(`1${index}`, name),
    );
    expect(await choose({ include: ['train-*'], exclude: ['*-test'] }, ...jobs, ...hostile)).toEqual(['15', '11', '1']);
    expect(await choose({ exclude: ['train-*'] }, ...jobs)).toEqual(['4', '3']);
    expect(await choose({ include: ['**', '!train-*'] }, ...jobs)).toEqual(['4', '3']);
  });
});

describe('a job that is over when it is taken', () => {
  const [early, late] = ['2026-11-05T10:00:00', '2026-11-05T10:00:20'];
  it.each<[string, Partial<JobInformation> | undefined, string | null, string | null]>([
    ['came after the last list', undefined, late, 'Submitted'],
    ['came after the last list, by times of other zones', undefined, `${late}Z`, null],
    ['was in the last list as waiting', { state: 'Queued' }, early, 'Queued'],
    ['was in the last list as over', { state: 'Failed' }, early, null],
    ['is missing in the last list, but submitted before', undefined, early, null],
    ['has no submission', undefined, null, null],
  ])('and %s', async (_, before, submitted, seenState) => {
    const submitTime = submitted === null ? null : jobTimeOf(submitted);
    const other = jobOf('1', 'Running', { submitTime: jobTimeOf(early) });
    const job = jobOf('7', 'Failed', { submitTime });
    const last = await seenIn(before === undefined ? [other] : [other, { ...job, ...before }]);
    expect(seenStateOf(job, last)).toBe(seenState);
    expect(seenStateOf(job, undefined)).toBeNull();
  });
});

it('the jobs that a rule would take now are counted, whatever is followed already', async () => {
  const store = new Store({ directory: newState(temporaryDirectory()), service: 'x', owner: true, now: () => NOW });
  onTestFinished(() => store.close());
  const order = { tasks: [], files: [], results: false, settleAfterMs: null, source: 'mine' } as const;
  const jobs = Array.from({ length: 9 }, (_, id) => jobOf(`${id + 1}`, id < 6 ? 'Running' : 'Configuring'));
  for (const { id } of jobs.slice(0, 2)) store.transaction(() => store.jobs.watch({ ...order, jobId: id }, NOW));
  const counts = async (maxJobs: number) => {
    const rule = { ...ALL, maxJobs, source: 'command', since: NOW } as const;
    const { fresh, fitting, taken } = await choiceOf(jobs, rule, store, NOW);
    return [fresh, fitting, taken].map(({ length }) => length);
  };
  expect([await counts(5), await counts(2), await counts(1)]).toEqual([
    [7, 4, 3],
    [7, 4, 0],
    [7, 4, 0],
  ]);
});
