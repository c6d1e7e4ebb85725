/** Hundreds of jobs of the user, followed by one command. */
import { describe, expect, it } from 'vitest';
import { idsOf, placeOfUser, submitJobs } from '../../support/e2e-mine.ts';
import { PATIENCE, until } from '../../support/e2e-until.ts';

const DAY_SECONDS = 86_400;

describe('all jobs of the user', PATIENCE, () => {
  it('are followed by one command, but for old ones: 300, half of them old', async (context) => {
    const { place, sandbox, followed } = await placeOfUser(context);
    await submitJobs(sandbox, 150, { ended: true, ageSeconds: 3 * DAY_SECONDS });
    const running = await submitJobs(sandbox, 30);
    const young = await submitJobs(sandbox, 120, { ended: true });
    const agent = await place.run();
    const watched = await place.agent('watch', '--mine');
    expect(watched).toMatchObject({ code: 0, stderr: '' });
    expect(watched.stdout).toContain(
      '300 jobs of the user: 150 taken now (30 running), 150 ignored (too old, or another name)\n',
    );
    await until('150 jobs', async () => (await followed()).length === 150);
    expect(await followed()).toEqual(idsOf([...running, ...young]));
    for (const job of [...running.slice(-2), ...young.slice(-2)]) await place.mirrored(job, 'stdout');

    // Whoever comes is followed, after a kill as well; the end of the rule ends no job.
    await agent.kill();
    const [late] = await submitJobs(sandbox, 1, { name: 'late' });
    if (late === undefined) throw new Error('there is none');
    await place.run();
    await place.mirrored(late, 'stdout');
    const { watchMine, jobs } = await place.status();
    expect(watchMine).toMatchObject({ source: 'command', include: ['**'], maxAgeDays: 1, following: 151, waiting: 0 });
    expect(jobs.at(-1)).toMatchObject({ jobId: late.jobId, source: 'mine' });
    const ended = await place.agent('unwatch', '--mine');
    expect(ended).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('151 jobs that are followed by now stay so'),
    });
    expect(await place.status()).toMatchObject({ watchMine: null, jobs: expect.arrayContaining([expect.anything()]) });
    expect(await followed()).toHaveLength(151);
    expect(await place.agent('unwatch', '--mine')).toMatchObject({ code: 7 });
  });
});
