/** What delays the end of a job: a request that fails now, and may succeed later. */
import { expect, it, onTestFinished } from 'vitest';
import { mayStillCome, type OneJob } from '../../../src/agent/loop/one-job.ts';
import type { ResultRow } from '../../../src/store/rows.ts';
import { Store } from '../../../src/store/store.ts';
import { JOB, TASK } from '../../support/engine.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

const ERROR = { code: 'fault', message: 'refused', hint: null, since: 1 } as const;
const RESULT: ResultRow = {
  ...{ jobId: JOB, name: '/11/a', state: 'synced', reason: null, bytes: 1, sha256: null, live: null, stamp: null },
  ...{ stampProven: false, listedAt: 1, fetchedAt: 1, hangs: 0, dueAt: 1, intervalMs: 1 },
};

function jobWith({ results = true, failing = '' }) {
  const store = new Store({ directory: temporaryDirectory(), service: 'x', owner: true, now: () => 1 });
  onTestFinished(() => store.close());
  const order = { jobId: JOB, tasks: [TASK], files: ['log'], settleAfterMs: null, source: 'command' } as const;
  store.jobs.watch({ ...order, results }, 1);
  const failures = { isFailing: (kind: string) => kind === failing };
  const isDelayed = mayStillCome({ jobId: JOB, context: { store }, failures } as unknown as OneJob);
  return { store, isDelayed };
}

it.each([
  ['nothing fails', {}, false],
  ['polls fail', { failing: 'poll' }, true],
  ['the search for tasks fails', { failing: 'search' }, true],
  ['the sync of results fails', { failing: 'results' }, true],
  ['the sync of results fails, which are not wanted any more', { failing: 'results', results: false }, false],
] as const)('the end of a job is delayed as it should be where %s', (_, job, isDelayed) => {
  expect(jobWith(job).isDelayed()).toBe(isDelayed);
});

it('the end of a job is delayed by a live file with an error', () => {
  const { store, isDelayed } = jobWith({ results: false });
  const [row] = store.liveFiles.ofJob(JOB);
  if (row === undefined) throw new Error('the job has no live file');
  store.liveFiles.save({ ...row, error: ERROR });
  expect(isDelayed()).toBe(true);
});

it('the end of a job is delayed by a result that failed, and not by one that is refused', () => {
  const { store, isDelayed } = jobWith({});
  store.results.saveAll([RESULT, { ...RESULT, name: '/11/b', state: 'refused' }]);
  expect(isDelayed()).toBe(false);
  store.results.saveAll([{ ...RESULT, name: '/11/c', state: 'failed' }]);
  expect(isDelayed()).toBe(true);
});
