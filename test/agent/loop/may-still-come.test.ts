/** What delays the end of a job: a request that fails now, and may succeed later. */
import { expect, it, onTestFinished } from 'vitest';
import { mayStillCome, type OneJob } from '../../../src/agent/loop/one-job.ts';
import type { ResultRow, StoredError } from '../../../src/store/rows.ts';
import { Store } from '../../../src/store/store.ts';
import { JOB, TASK } from '../../support/engine.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

const ERROR: StoredError = { code: 'fault', message: 'refused', hint: null, since: 1 };
const RESULT: ResultRow = {
  ...{ jobId: JOB, name: '/11/a', state: 'synced', reason: null, bytes: 1, sha256: null, live: null, stamp: null },
  ...{ stampProven: false, listedAt: 1, fetchedAt: 1, hangs: 0, dueAt: 1, intervalMs: 1 },
};

it.each<[string, boolean, { results?: boolean; failing?: string; error?: StoredError; result?: ResultRow['state'] }]>([
  ['nothing fails', false, {}],
  ['polls fail', true, { failing: 'poll' }],
  ['the search for tasks fails', true, { failing: 'search' }],
  ['a live file has an error', true, { results: false, error: ERROR }],
  ['the sync of results fails', true, { failing: 'results' }],
  ['the sync of results fails, which are not wanted any more', false, { failing: 'results', results: false }],
  ['a result is refused', false, { result: 'refused' }],
  ['a result failed', true, { result: 'failed' }],
])(
  'the end of a job is delayed as it should be where %s',
  (_, isDelayed, { results = true, failing, error, result }) => {
    const store = new Store({ directory: temporaryDirectory(), service: 'x', owner: true, now: () => 1 });
    onTestFinished(() => store.close());
    const order = { jobId: JOB, tasks: [TASK], files: ['log'], settleAfterMs: null, source: 'command' } as const;
    store.jobs.watch({ ...order, results }, 1);
    for (const row of store.liveFiles.ofJob(JOB)) store.liveFiles.save({ ...row, error: error ?? null });
    store.results.saveAll([RESULT, { ...RESULT, name: '/11/b', state: result ?? 'synced' }]);
    const failures = { isFailing: (kind: string) => kind === failing };
    expect(mayStillCome({ jobId: JOB, context: { store }, failures } as unknown as OneJob)()).toBe(isDelayed);
  },
);
