import { expect, it, onTestFinished } from 'vitest';
import { saveReported } from '../../../src/agent/tasks/task-search.ts';
import { LIVE_FILE_NAMES, type TaskId } from '../../../src/job.ts';
import { Store } from '../../../src/store/store.ts';
import { JOB } from '../../support/engine.ts';
import { HeldClock } from '../../support/held-clock.ts';
import { newState } from '../../support/new-state.ts';
import { SILENT } from '../../support/silent-log.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

const TASK = '9001' as TaskId;

function setUp(tasks: readonly TaskId[] | null = null) {
  const clock = new HeldClock();
  const store = new Store({ directory: newState(temporaryDirectory()), service: 'x', owner: true, now: clock.now });
  onTestFinished(() => store.close());
  const order = { files: LIVE_FILE_NAMES, results: false, settleAfterMs: null, source: 'command' } as const;
  store.transaction(() => store.jobs.watch({ ...order, jobId: JOB, tasks }, clock.now()));
  const keep = (reported: readonly TaskId[]) => saveReported(JOB, reported, { store, log: SILENT, clock });
  return { clock, store, keep };
}

it('tasks that are reported are found once, and reported again they write nothing', async () => {
  const { clock, store, keep } = setUp();
  expect(await keep([TASK])).toBe(1);
  expect(store.taskSearches.knownTasks(JOB)).toEqual([TASK]);
  const kept = store.taskSearches.get(JOB);
  expect(kept).toMatchObject({ foundBy: 'job-service', nextSearchAt: null, hint: null });
  await clock.pass(1_000);
  expect(await keep([TASK])).toBe(0);
  expect(store.taskSearches.get(JOB)).toEqual(kept);
});

it('what a search of their own had left is over once they are reported again', async () => {
  const { clock, store, keep } = setUp();
  await keep([TASK]);
  const search = store.taskSearches.get(JOB);
  if (search === undefined) throw new Error('the job has no search');
  const left = { ...search, fruitless: 4, nextSearchAt: clock.now() + 600_000, hint: 'name them' };
  store.transaction(() => store.taskSearches.save(left));
  expect(await keep([TASK])).toBe(0);
  expect(store.taskSearches.get(JOB)).toMatchObject({ fruitless: 0, nextSearchAt: null, hint: null });
});

it('nothing becomes of them where the order names the tasks, or none is reported', async () => {
  const named = setUp([TASK]);
  expect(await named.keep(['7' as TaskId])).toBe(0);
  expect(named.store.taskSearches.knownTasks(JOB)).toEqual([TASK]);
  const open = setUp();
  const before = open.store.taskSearches.get(JOB);
  expect(await open.keep([])).toBe(0);
  expect(open.store.taskSearches.get(JOB)).toEqual(before);
});
