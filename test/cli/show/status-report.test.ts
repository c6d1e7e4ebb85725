/** The report of `agent status` from the state that an agent left. */
import { expect, it } from 'vitest';
import { reportOf } from '../../../src/cli/show/status-report.ts';
import type { JobId, TaskId } from '../../../src/job.ts';
import { ownState } from '../own-state.ts';

it('a job whose first poll has committed bytes, but has not ended, has grown', async () => {
  const { config, store } = await ownState();
  const jobId = '601' as JobId;
  const tasks = ['602' as TaskId];
  store.jobs.watch({ jobId, tasks, files: ['stdout'], results: true, settleAfterMs: null, source: 'command' }, 1);
  const grownAt = () => reportOf(config, store, undefined).jobs.map((job) => job.grownAt);
  expect(grownAt()).toEqual([null]);
  const [row] = store.liveFiles.ofJob(jobId);
  if (row !== undefined) store.liveFiles.save({ ...row, position: 5, grownAt: 1_000 });
  expect(grownAt()).toEqual([1_000]);
});
