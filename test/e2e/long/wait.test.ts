/** `agent wait` with and without a running agent; test/cli/wait.test.ts and test/wiring/exit-codes.test.ts have its codes. */
import { expect, it } from 'vitest';
import { placeWithJob } from '../../support/e2e-job.ts';

it('agent wait ends with 12 when the time is up, prints lines meanwhile, and leaves the job watched', async (context) => {
  const spec = { tasks: [{ command: ['sh', '-c', 'echo begun; while :; do echo on; sleep 0.1; done'] }] };
  const { place, job } = await placeWithJob(context, { spec });
  /** A busy machine needs a longer time until the first lines are there. */
  const waitUntilPrinted = async (name: 'stdout' | 'stderr', line: RegExp, ...options: string[]) => {
    for (let seconds = 2; ; seconds *= 4) {
      const ended = await place.agent('wait', job.jobId, '--tail', '--timeout', `${seconds}s`, ...options);
      expect(ended.code).toBe(12);
      if (line.test(ended[name])) return ended;
      expect(seconds, `${ended.stdout}${ended.stderr}`).toBeLessThan(60);
    }
  };
  const here = await waitUntilPrinted('stdout', /stdout +\| begun\n/);
  expect(here.stderr).toContain(`job ${job.jobId} is not over`);
  expect((await place.status()).jobs).toMatchObject([{ jobId: job.jobId, state: 'watched' }]);
  const agent = await place.run();
  const beside = await waitUntilPrinted('stderr', /stdout +\| on\n/, '--json');
  expect(JSON.parse(beside.stdout)).toMatchObject({ timedOut: true, jobs: [], waitingFor: [job.jobId] });
  await agent.kill();
});

it('watches a job that is not watched yet, by the running agent, and ends at a signal', async (context) => {
  const { place, job } = await placeWithJob(context);
  const agent = await place.run();
  const waiting = place.start(['wait', job.jobId]);
  await agent.logs('job followed', { jobId: job.jobId });
  waiting.signal('SIGINT');
  expect(await waiting.ended).toMatchObject({ code: 130 });
  // The agent goes on.
  expect((await place.status()).jobs).toMatchObject([{ jobId: job.jobId, state: 'watched' }]);
});
