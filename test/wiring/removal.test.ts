/** What the whole daemon does before a job is removed. */
import fs from 'node:fs';
import { expect, test } from 'vitest';
import type { JobId } from '../../src/job.ts';
import { quietJob, requestOf, taskOf } from '../support/e2e-job.ts';
import { until } from '../support/e2e-until.ts';
import { jobOf } from '../support/model-remote.ts';
import { runDaemon } from './whole-daemon.ts';

test('a job that is removed at the moment of its end has the notifications of that end', async (context) => {
  const { place, sandbox, job } = await quietJob(context);
  const jobId = job.jobId as JobId;
  fs.writeFileSync(taskOf(job).files.stdout, 'its last line, without an end');
  place.configure(sandbox, {
    service: { jobsUrl: sandbox.jobsUrl },
    watch: [requestOf(job)],
    notify: [{ on: ['failed', 'match'], match: 'last line', command: ['false'] }],
  });
  const { store } = await runDaemon(place);
  await place.mirrored(job, 'stdout');
  await until('its report', () => store.outbox.jobs.get(jobId)?.jobState === 'Running' || undefined);
  // As the last pass leaves it, and `agent forget --delete-files` finds it, before notifications are looked for again.
  const requestId = store.transaction(() => {
    store.jobInformation.save({ jobId, information: jobOf(jobId, 'Failed'), since: 1, reportedAt: Date.now() });
    store.jobs.setState(jobId, 'settled');
    return store.requests.add(jobId, 'forget-files', Date.now());
  });
  store.wake();
  await until('its removal', () => store.requests.get(requestId)?.answer ?? undefined);
  expect(store.jobs.get(jobId)).toBeUndefined();
  expect(fs.existsSync(place.mirrorOf(jobId, taskOf(job).taskId, 'stdout'))).toBe(false);
  expect(store.outbox.all().map(({ event: { type, text } }) => [type, text])).toEqual([
    ['failed', undefined],
    ['match', 'its last line, without an end'],
  ]);
});
