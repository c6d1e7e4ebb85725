/** What an order without tasks leaves to be found, and what becomes of it when the next order comes. */
import { expect, it, onTestFinished } from 'vitest';
import type { LiveFileName, TaskId } from '../../src/job.ts';
import { Store } from '../../src/store/store.ts';
import { JOB, TASK } from '../support/engine.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

function setUp() {
  const store = new Store({ directory: temporaryDirectory(), service: 'x', owner: true, now: Date.now });
  onTestFinished(() => store.close());
  const watch = (tasks: readonly TaskId[] | null, files: readonly LiveFileName[]) =>
    store.transaction(() =>
      store.jobs.watch({ jobId: JOB, tasks, files, results: true, settleAfterMs: null, source: 'command' }, 1),
    );
  const find = (...tasks: TaskId[]) => {
    const search = store.taskSearches.get(JOB);
    if (search === undefined) throw new Error('nothing is searched for');
    store.transaction(() => store.taskSearches.addTasks(search, tasks));
  };
  const files = () => store.liveFiles.ofJob(JOB).map(({ taskId, file }) => `${taskId} ${file}`);
  return { store, watch, find, files };
}

it('the search for tasks gives the tasks that are found the files that were ordered', () => {
  const { watch, find, files } = setUp();
  watch(null, ['stdout', 'log']);
  expect(files()).toEqual([]);
  find(TASK);
  find(TASK, '9002' as TaskId);
  expect(files().toSorted()).toEqual(['9001 log', '9001 stdout', '9002 log', '9002 stdout']);
});

it('the search for tasks takes nothing away that was found or ordered before', () => {
  const { watch, find, files } = setUp();
  watch(null, ['stdout']);
  find(TASK);
  watch(null, ['stderr']);
  expect(files().toSorted()).toEqual(['9001 stderr', '9001 stdout']);
  find('9002' as TaskId);
  expect(files().toSorted()).toEqual(['9001 stderr', '9001 stdout', '9002 stderr']);
});

it('the search for tasks searches for nothing once tasks are named', () => {
  const { store, watch } = setUp();
  watch(null, ['stdout']);
  watch([TASK], ['stdout']);
  expect(store.taskSearches.get(JOB)).toBeUndefined();
  watch([], ['stdout']);
  expect(store.taskSearches.get(JOB)).toBeUndefined();
});

it('a settled job is followed again, and no other: what was verified proves nothing about its next end', () => {
  const { store, watch } = setUp();
  watch([TASK], ['stdout']);
  const [row] = store.liveFiles.ofJob(JOB);
  if (row === undefined) throw new Error('it was just watched');
  for (const [before, again, after] of [
    ['settled', () => store.jobs.resume(JOB), 'watched'],
    ['ended', () => store.jobs.resume(JOB), 'ended'],
    ['ending', () => store.jobs.resume(JOB), 'ending'],
    ['settled', () => watch([TASK], ['stdout']), 'watched'],
  ] as const) {
    store.jobs.setState(JOB, before);
    store.liveFiles.setComparison(row, { verified: 0, unverified: 'no', early: false });
    expect(store.liveFiles.ofJob(JOB)).toEqual([{ ...row, verified: 0, unverified: 'no', early: false }]);
    again();
    expect(store.jobs.get(JOB)?.state).toBe(after);
    expect(store.liveFiles.ofJob(JOB)).toMatchObject([{ early: true }]);
  }
});
