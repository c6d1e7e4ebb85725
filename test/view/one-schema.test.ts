/** The JSON of the page and that of the commands are one schema: a key that both have means the same. */
import { expect, it } from 'vitest';
import { reportOf } from '../../src/cli/show/status-report.ts';
import type { JobId, TaskId } from '../../src/job.ts';
import { jobTimeOf } from '../../src/job-information.ts';
import type { Store } from '../../src/store/store.ts';
import { detailOf, filesOf, jobsOf } from '../../src/view/events/jobs.ts';
import { JobStores } from '../../src/view/fleet.ts';
import { ownState } from '../cli/own-state.ts';
import { NEW_ROW } from '../support/live-place.ts';
import { differenceOf } from '../virtual/same-keys.ts';

const JOB = '601' as JobId;
const TASK = '602' as TaskId;
const [SUBMITTED, STARTED, LIMIT] = ['09:00:00', '09:01:00Z', '21:01:00Z'].map((at) => jobTimeOf(`2026-11-28T${at}`));
const OUTAGE = { code: 'unreachable', message: 'connection refused', hint: null, since: 9_500 } as const;

/** A running job with a task, a growing file, an outage, results, and an end that lies ahead. */
function fill(store: Store): void {
  const order = { jobId: JOB, files: ['stdout', 'log'] as const, results: true, settleAfterMs: null };
  store.jobs.watch({ ...order, tasks: null, source: 'mine' }, 5);
  for (const file of order.files)
    store.liveFiles.save({ ...NEW_ROW, jobId: JOB, taskId: TASK, file, position: 7, grownAt: 9_000 });
  const task = { id: TASK, name: 'solve', state: 'Running', startTime: STARTED ?? null, endTime: LIMIT ?? null };
  const times = {
    creationTime: null,
    submitTime: SUBMITTED ?? null,
    startTime: STARTED ?? null,
    endTime: LIMIT ?? null,
  };
  const information = { ...times, id: JOB, name: 'cavity', state: 'Running' };
  const tasks = [{ ...task, errorMessage: 'slow' }];
  store.jobInformation.save({ jobId: JOB, information: { ...information, tasks }, since: 8, reportedAt: 9 });
  store.jobs.endRun(JOB, { polledAt: 20_000, grownAt: 8_000, refused: 0, failures: 3, error: OUTAGE });
}

it.each(['watched', 'settled'] as const)('a %s job is the same to the page and to agent status', async (state) => {
  const { config, store } = await ownState();
  fill(store);
  store.jobs.setState(JOB, state);
  const stores = new JobStores(() => store, null);
  const [summary] = jobsOf(stores);
  const [reported] = reportOf(config, store, 'all').jobs;
  for (const shown of [summary, detailOf(stores, JOB), { files: filesOf(stores, JOB) }])
    expect(differenceOf(shown, reported)).toBeUndefined();
  expect(summary).toMatchObject({ endTime: null, grownAt: 9_000, polledAt: 9_500, tasks: { found: 1 } });
});

it('a difference is found, wherever it is', () => {
  expect(differenceOf({ a: [{ b: 1, only: 2 }] }, { a: [{ b: 1 }] })).toBeUndefined();
  expect(differenceOf({ a: [{ b: 1 }] }, { a: [{ b: 2 }] })).toBe('.a.0.b: 1, 2');
  expect(differenceOf({ a: [1] }, { a: [] })).toBe('.a.length: 1, 0');
  expect(differenceOf({ a: null }, { a: {} })).toBe('.a: null, [object Object]');
});
