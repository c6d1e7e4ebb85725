/** The end of a job, which the interface does not name: by itself after quiet time, or asked for. */
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { CONTENT, passOver, quietJob, shownOf } from '../../support/e2e-quiet-job.ts';
import { PATIENCE } from '../../support/e2e-until.ts';

describe.concurrent('a job', PATIENCE, () => {
  it('that is quiet for long enough is settled, with proof, and said to be', async (context) => {
    const { place, job, stdout, taskId } = await quietJob(context, 0.03);
    const agent = await place.run();
    expect(await passOver(agent, job)).toMatchObject({ level: 'info', state: 'settled', verified: 4, openEnds: [] });
    expect(fs.readFileSync(place.mirrorOf(job.jobId, taskId, 'stdout')).equals(CONTENT)).toBe(true);
    expect(await shownOf(place, job)).toMatchObject({ state: 'settled', error: null });
    expect((await place.agent('status')).stdout).toContain('settled');
    expect((await place.agent('status', job.jobId)).stdout).toContain('verified');
    await agent.kill();

    // It stays so over a start, and can be followed again.
    const next = await place.run();
    await next.logs('configured job not followed', { jobId: job.jobId, state: 'settled' });
    fs.appendFileSync(stdout, 'later\n');
    expect(await place.agent('watch', job.jobId, '--task', taskId)).toMatchObject({ code: 0 });
    await place.mirrored(job, 'stdout');
  });

  it('that is unwatched stays so, though it stands in the configuration', async (context) => {
    const { place, job, stdout, taskId } = await quietJob(context, 60);
    const agent = await place.run();
    const unwatched = await place.agent('unwatch', job.jobId);
    expect(unwatched).toMatchObject({ code: 0, stderr: '' });
    expect(unwatched.stdout).toContain(
      `${place.configFile} still lists it: the agent does not follow it until you run agent watch ${job.jobId}`,
    );
    await agent.kill();
    const next = await place.run();
    await next.logs('configured job not followed', { jobId: job.jobId, state: 'ended' });
    expect((await place.status()).jobs).toEqual([]);
    fs.appendFileSync(stdout, 'later\n');
    expect(await place.agent('watch', job.jobId, '--task', taskId)).toMatchObject({ code: 0 });
    await place.mirrored(job, 'stdout');
  });
});
