import { expect, it } from 'vitest';
import { reportedNow } from '../../../src/agent/pass/deleted-jobs.ts';
import { JobtailError } from '../../../src/errors.ts';
import { NO_LIVE_FILES, reasonsAgainst } from '../../../src/proven.ts';
import { JOB, polledPlace } from '../../support/engine.ts';
import { HeldClock } from '../../support/held-clock.ts';
import { jobOf, ModelJobService } from '../../support/model-remote.ts';

it('a deleted job is known from the first report of it on, and a report that fails decides nothing, but a stop does', async () => {
  const { engine } = polledPlace();
  const jobService = new ModelJobService();
  const stop = new AbortController();
  const clock = new HeldClock();
  const reported = () => reportedNow(JOB, { store: engine.store, clock, jobService, signal: stop.signal });
  jobService.failure = new JobtailError('unavailable', 'it is down');
  expect(await reported()).toBeUndefined();
  stop.abort();
  await expect(reported()).rejects.toMatchObject({ code: 'unavailable' });
  jobService.failure = undefined;
  jobService.set(jobOf(JOB, 'Running'));
  expect(await reported()).toMatchObject({ state: 'Running' });
  expect(engine.store.jobInformation.get(JOB)).toBeUndefined();
  jobService.set(jobOf(JOB, 'Deleted'));
  for (let times = 0; times < 2; times += 1) expect(await reported()).toMatchObject({ state: 'Deleted' });
  expect(engine.store.jobInformation.get(JOB)).toMatchObject({ since: clock.now(), reportedAt: clock.now() });
  expect(jobService.questions).toBe(4);
});

it('results that are not wanted any more are no reason against a job', () => {
  const reasons = (results: boolean) =>
    reasonsAgainst({ error: null, results }, [], { listed: 3, failed: 1, inFlux: 0, queued: 2 });
  expect(reasons(false)).toEqual([NO_LIVE_FILES]);
  expect(reasons(true)).toHaveLength(3);
});
