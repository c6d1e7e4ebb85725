/** All jobs of the user, followed by one command or by the configuration. */
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { JobDescription } from '../../src/sandbox/control.ts';
import { taskOf } from '../support/e2e-job.ts';
import { Place } from '../support/e2e-place.ts';
import type { SandboxService } from '../support/e2e-sandbox.ts';
import { PATIENCE, until } from '../support/e2e-until.ts';

type Context = Parameters<typeof Place.make>[0];

const DAY_SECONDS = 86_400;
/** Of a job that every hour of its life is asked about, for the agent has many. */
const SECTIONS = { poll: { minIntervalSeconds: 0.5, maxIntervalSeconds: 5 }, results: { enabled: false } };

async function setUp(context: Context) {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  const configure = (sections = {}) =>
    place.configure(sandbox, { service: { jobsUrl: sandbox.jobsUrl }, ...SECTIONS, ...sections });
  configure();
  const report = async () => JSON.parse((await place.agent('status', '--json')).stdout);
  /** Ids of the jobs that are followed, in the order of their numbers. */
  const followed = async () => (await place.status()).jobs.map(({ jobId }) => jobId);
  return { place, sandbox, configure, report, followed };
}

/** Jobs of one task whose stdout has a line; those that ended did so `ageSeconds` ago. */
async function submit(sandbox: SandboxService, count: number, { name = 'heat', ended = false, ageSeconds = 0 } = {}) {
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

describe.concurrent('all jobs of the user', PATIENCE, () => {
  it('are followed by one command, but for old ones: 300, half of them old', async (context) => {
    const { place, sandbox, followed, report } = await setUp(context);
    await submit(sandbox, 150, { ended: true, ageSeconds: 3 * DAY_SECONDS });
    const running = await submit(sandbox, 30);
    const young = await submit(sandbox, 120, { ended: true });
    const agent = await place.run();
    const watched = await place.agent('watch', '--mine');
    expect(watched).toMatchObject({ code: 0, stderr: '' });
    expect(watched.stdout).toContain(
      '300 jobs of the user: 150 taken now (30 running), 150 are left alone, being too old or named otherwise\n',
    );
    await until('150 jobs', async () => (await followed()).length === 150);
    expect(await followed()).toEqual(idsOf([...running, ...young]));
    for (const job of [...running.slice(-2), ...young.slice(-2)]) await place.mirrored(job, 'stdout');

    // Whoever comes is followed, after a kill as well; the end of the rule ends no job.
    await agent.kill();
    const [late] = await submit(sandbox, 1, { name: 'late' });
    if (late === undefined) throw new Error('there is none');
    await place.run();
    await place.mirrored(late, 'stdout');
    const { watchMine, jobs } = await report();
    expect(watchMine).toMatchObject({ source: 'command', include: ['**'], maxAgeDays: 1, following: 151, waiting: 0 });
    expect(jobs.at(-1)).toMatchObject({ jobId: late.jobId, source: 'mine' });
    const ended = await place.agent('unwatch', '--mine');
    expect(ended).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('151 jobs that are followed by now stay so'),
    });
    expect(await report()).toMatchObject({ watchMine: null, jobs: expect.arrayContaining([expect.anything()]) });
    expect(await followed()).toHaveLength(151);
    expect(await place.agent('unwatch', '--mine')).toMatchObject({ code: 7 });
  });

  it('are followed by the configuration, so many at a time, by their names', async (context) => {
    const { place, sandbox, configure, followed, report } = await setUp(context);
    const ended = await submit(sandbox, 6, { ended: true });
    const running = await submit(sandbox, 3);
    await submit(sandbox, 2, { name: 'test' });
    configure({ watchMine: { include: ['heat-*'], exclude: ['*-5'], mostJobs: 4 } });
    await place.run();
    await until('four jobs', async () => (await followed()).length === 4);
    // The running ones, and the youngest of the others but for the one that is excluded.
    expect(await followed()).toEqual([ended[4]?.jobId, ...idsOf(running)]);
    await until('the count', async () => (await report()).watchMine?.waiting === 4);
    const page = (await place.agent('status')).stdout;
    expect(page).toContain('all jobs of the user are followed: 4 jobs now, 4 wait (4 at a time)\n');

    // The rule of a command counts before it, and its end brings it back.
    const watched = await place.agent('watch', '--mine', '--include', 'test-*', '--exclude', '*-1', '--max-age', '0');
    expect(watched.stdout).toContain('11 jobs of the user: 0 taken now (0 running), 4 were watched before');
    expect(watched.stdout).toContain('1 wait, for at most 4 are followed at a time');
    expect((await report()).watchMine).toMatchObject({ source: 'command', include: ['test-*'], maxAgeDays: 0 });
    const most = await place.agent('watch', '--mine', '--most-jobs', '5');
    expect(most.stdout).toContain('11 jobs of the user: 1 taken now (1 running), 4 were watched before');
    await until('the fifth job', async () => (await followed()).length === 5);
    expect((await place.agent('unwatch', '--mine')).stdout).toContain('watchMine still stands in');
    expect((await report()).watchMine).toMatchObject({ source: 'config', include: ['heat-*'] });
    const refused = await place.agent('unwatch', '--mine');
    expect(refused).toMatchObject({ code: 7, stderr: expect.stringContaining('set watchMine: false') });
  });

  it('stay ordered while no agent runs, and while nobody tells of them', async (context) => {
    const { place, sandbox, followed } = await setUp(context);
    const [job] = await submit(sandbox, 1);
    await sandbox.setHabits({ jobService: false });
    const watched = await place.agent('watch', '--mine');
    expect(watched).toMatchObject({ code: 0, stderr: expect.stringContaining('no agent is running') });
    expect(watched.stdout).toContain('how many that are now cannot be said');
    const agent = await place.run();
    await agent.says('the service that tells of jobs');
    expect((await place.agent('status')).stdout).toContain('job states are not told: ');
    await agent.kill();
    await sandbox.setHabits({ jobService: true });
    await place.run();
    await until('the job', async () => (await followed())[0] === job?.jobId);
  });
});
