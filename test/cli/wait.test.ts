/** What `agent status` and `agent wait` show of the state that an agent left. */
import { expect, it } from 'vitest';
import { endOf, exitCodeOf } from '../../src/cli/commands/wait.ts';
import { reportOf } from '../../src/cli/show/status-report.ts';
import type { JobId, TaskId } from '../../src/job.ts';
import type { ResultState, WatchState } from '../../src/store/rows.ts';
import { jobOf } from '../support/model-job-service.ts';
import { ownState } from './own-state.ts';

const JOB = '601' as JobId;
const NO_STAMP = { stamp: null, stampProven: false };
const NOT_FOLLOWED = 'it is not followed any more';
const NOT_REPORTED = 'it is not reported how the job ended';

it.each<[string, ResultState, WatchState, string | null, number, string[]]>([
  ['whose results are here', 'synced', 'settled', 'Finished', 0, []],
  ['that failed', 'synced', 'settled', 'Failed', 10, []],
  ['with a result in flux', 'in-flux', 'settled', 'Finished', 1, ['1 result: changed while it was fetched']],
  ['with a failed result', 'failed', 'settled', 'Finished', 1, ['1 result: not fetched, or refused']],
  ['that was unwatched', 'synced', 'ended', 'Finished', 1, [NOT_FOLLOWED]],
  ['that was unwatched, without a state', 'synced', 'ended', null, 1, [NOT_FOLLOWED, NOT_REPORTED]],
  ['without a state', 'synced', 'settled', null, 1, [NOT_REPORTED]],
])('a job %s', async (_, result, state, jobState, code, unproven) => {
  const { config, store } = await ownState();
  const request = { jobId: JOB, tasks: [], files: [], results: true, settleAfterMs: null } as const;
  store.jobs.watch({ ...request, source: 'command' }, 1);
  const times = { listedAt: 1, fetchedAt: 1, dueAt: 1, intervalMs: 1, hangs: 0, ...NO_STAMP };
  const row = { jobId: JOB, name: '/11/a', reason: null, bytes: 1, sha256: 'x', live: null, ...times };
  store.results.saveAll([{ ...row, state: result }]);
  const information = jobOf(JOB, jobState ?? '');
  if (jobState !== null) store.jobInformation.save({ jobId: JOB, information, since: 1, reportedAt: 1 });
  store.jobs.setState(JOB, state);
  const [end] = reportOf(config, store, JOB).jobs.map(endOf);
  expect(end?.unproven).toEqual(unproven);
  expect(end && exitCodeOf([end])).toBe(code);
});

it('a job whose first poll has committed bytes, but has not ended, has grown', async () => {
  const { config, store } = await ownState();
  const request = { jobId: JOB, tasks: ['602' as TaskId], files: ['stdout'], results: true } as const;
  store.jobs.watch({ ...request, settleAfterMs: null, source: 'command' }, 1);
  for (const row of store.liveFiles.ofJob(JOB)) store.liveFiles.save({ ...row, position: 5, grownAt: 1_000 });
  expect(reportOf(config, store, undefined).jobs).toMatchObject([{ grownAt: 1_000 }]);
});
