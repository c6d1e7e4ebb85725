/** All jobs of the user, followed by one command or by the configuration. */

import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { JobDescription } from '../../../simulator/control.ts';
import { taskOf } from '../../support/e2e-job.ts';
import { Place } from '../../support/e2e-place.ts';
import type { SandboxService } from '../../support/e2e-sandbox.ts';
import { until } from '../../support/e2e-until.ts';

type Context = Parameters<typeof Place.make>[0];

/** Of a job that every hour of its life is asked about, for the agent has many. */
const SECTIONS = { poll: { minIntervalSeconds: 0.5, maxIntervalSeconds: 5 }, results: { enabled: false } };

/** A sandbox with a job service, and a configuration for it. */
async function placeOfUser(context: Context) {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  const configure = (sections = {}) =>
    place.configure(sandbox, { service: { jobsUrl: sandbox.jobsUrl }, ...SECTIONS, ...sections });
  configure();
  /** Ids of the jobs that are followed, in the order of their numbers. */
  const followed = async () => (await place.status()).jobs.map(({ jobId }) => jobId);
  return { place, sandbox, configure, followed };
}

/** Jobs of one task whose stdout has a line; those that ended did so `ageSeconds` ago. */
async function submitJobs(
  sandbox: SandboxService,
  count: number,
  { name = 'heat', ended = false, ageSeconds = 0 } = {},
) {
  const jobs: JobDescription[] = [];
  for (let index = 0; index < count; index++) {
    const job = await sandbox.submit({ name: `${name}-${index}`, tasks: [{}], ageSeconds });
    fs.writeFileSync(taskOf(job).files.stdout, `${job.jobId}\n`);
    if (ended) await sandbox.change(job.jobId, 'finish');
    jobs.push(job);
  }
  return jobs;
}

const idsOf = (jobs: readonly JobDescription[]) => jobs.map(({ jobId }) => jobId);

describe.concurrent('all jobs of the user', () => {
  it('are followed by the configuration, so many at a time, by their names', async (context) => {
    const { place, sandbox, configure, followed } = await placeOfUser(context);
    const ended = await submitJobs(sandbox, 6, { ended: true });
    const running = await submitJobs(sandbox, 3);
    await submitJobs(sandbox, 2, { name: 'test' });
    configure({ watchMine: { include: ['heat-*'], exclude: ['*-5'], maxJobs: 4 } });
    await place.run();
    await until('four jobs', async () => (await followed()).length === 4);
    // The running ones, and the youngest of the others but for the one that is excluded.
    expect(await followed()).toEqual([ended[4]?.jobId, ...idsOf(running)]);
    await until('the count', async () => (await place.status()).watchMine?.['waiting'] === 4);
    const page = (await place.agent('status')).stdout;
    expect(page).toContain('following all jobs of the user: 4 jobs now, 4 wait (4 at a time)');

    // The rule of a command counts before it, and its end brings it back.
    const watched = await place.agent('watch', '--mine', '--include', 'test-*', '--exclude', '*-1', '--max-age', '0');
    expect(watched.stdout).toContain('11 jobs of the user: 0 taken now (0 running), 4 watched before');
    expect(watched.stdout).toContain('1 waiting (at most 4 at a time)');
    expect((await place.status()).watchMine).toMatchObject({ source: 'command', include: ['test-*'], maxAgeDays: 0 });
    const most = await place.agent('watch', '--mine', '--max-jobs', '5');
    expect(most.stdout).toContain('11 jobs of the user: 1 taken now (1 running), 4 watched before');
    await until('the fifth job', async () => (await followed()).length === 5);
    expect((await place.agent('unwatch', '--mine')).stdout).toContain('watchMine of ');
    expect((await place.status()).watchMine).toMatchObject({ source: 'config', include: ['heat-*'] });
    const refused = await place.agent('unwatch', '--mine');
    expect(refused).toMatchObject({ code: 7, stderr: expect.stringContaining('set watchMine: false') });
  });
});
