/** Jobs whose states are told: they end by themselves, go on if they are started again, and come without being named. */
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { openSharedStore } from '../../src/daemon/state.ts';
import { taskOf } from '../support/e2e-job.ts';
import { Place, type Sections } from '../support/e2e-place.ts';
import type { SandboxService } from '../support/e2e-sandbox.ts';
import { PATIENCE, until } from '../support/e2e-until.ts';

/** A state is half a minute old, a minute is waited, and polls come up to half a second late. */
const SETTLES_MS = 200_000;

/** The service with its sibling that tells of jobs. */
function withJobs(place: Place, sandbox: SandboxService, sections: Sections = {}): void {
  const { baseUrl } = sandbox;
  const service = {
    fileTransferUrl: `${baseUrl}/FileTransferWs`,
    jobsUrl: `${baseUrl}/JobManagementWs`,
    namespace: 'http://sandbox.example.org/',
    ...{ baseUrl, requestsPerMinute: 100_000 },
  };
  place.configure(sandbox, { service, ...sections });
}

const stateOf = async (place: Place, jobId: string) => (await place.status(jobId)).jobs[0]?.state;

describe.concurrent('a job that is followed by its number', { timeout: 600_000 }, () => {
  it('is settled when it is over and its last bytes came, also if kills come in between; and goes on when it is queued again', async (context) => {
    const place = Place.make(context);
    const sandbox = await place.startSandbox();
    await sandbox.setHabits({ flushSeconds: 20 });
    // The last bytes of a task that runs are not flushed.
    const script = 'echo begun; seq 2000; while [ ! -e ../go ]; do sleep 0.1; done; echo the last line';
    const job = await sandbox.submit({ tasks: [{ command: ['sh', '-c', script] }] });
    const { taskId, directory, files } = taskOf(job);
    withJobs(place, sandbox, { watch: [{ job: job.jobId }] });
    const agent = await place.run();
    const mirror = place.mirrorOf(job.jobId, taskId, 'stdout');
    const shows = (text: string) => () => fs.existsSync(mirror) && fs.readFileSync(mirror, 'utf8').includes(text);
    await until('the first line', shows('begun\n'));
    fs.writeFileSync(`${directory}/../go`, '');
    await sandbox.finished(job.jobId);
    await agent.says(`job ${job.jobId} is Finished`);
    await agent.kill();
    const next = await place.run();
    await until('the last line', shows('the last line\n'));
    await next.kill();
    expect(await stateOf(place, job.jobId)).toBe('watched');
    await place.run();
    await until('its end', async () => (await stateOf(place, job.jobId)) === 'settled', SETTLES_MS);
    expect(fs.readFileSync(mirror).equals(fs.readFileSync(files.stdout))).toBe(true);
    expect(await place.agent('verify', job.jobId)).toMatchObject({ code: 0 });

    fs.rmSync(`${directory}/../go`);
    await sandbox.change(job.jobId, 'requeue');
    await until('it to be followed again', async () => (await stateOf(place, job.jobId)) === 'watched', SETTLES_MS);
    await until(
      'what it writes now',
      async () =>
        fs.readFileSync(mirror).equals(fs.readFileSync(files.stdout).subarray(0, fs.statSync(mirror).size)) &&
        fs.statSync(mirror).size > 0,
    );
  });
});

it('all jobs of the user are followed as the rule says, over kills', PATIENCE, async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  const old = 30 * 24 * 3600;
  for (let count = 0; count < 60; count++) {
    const isOld = count % 2 === 0;
    const job = await sandbox.submit({ tasks: [{}], name: `train-${count}`, ageSeconds: isOld ? old : 0 });
    if (isOld) await sandbox.change(job.jobId, 'finish');
    fs.writeFileSync(taskOf(job).files.stdout, `of ${job.jobId}\n`);
  }
  await sandbox.submit({ tasks: [{}], name: 'other' });
  withJobs(place, sandbox, {
    watchMine: { include: ['train-*'], mostJobs: 20 },
    results: { enabled: false },
  });
  const followed = async () => {
    const store = openSharedStore(await loadConfig(place.configFile));
    try {
      return store.jobs.all();
    } finally {
      store.close();
    }
  };
  for (const mostJobs of [20, 25, 200]) {
    const agent = await place.run();
    await until(`${mostJobs} jobs`, async () => (await followed()).length >= Math.min(mostJobs, 30));
    await agent.kill();
    const jobs = await followed();
    expect(jobs).toHaveLength(Math.min(mostJobs, 30));
    expect(jobs.every(({ source, state }) => source === 'mine' && state === 'watched')).toBe(true);
    withJobs(place, sandbox, {
      watchMine: { include: ['train-*'], mostJobs: mostJobs === 20 ? 25 : 200 },
      results: { enabled: false },
    });
  }
  await place.run();
  for (const { jobId } of await followed()) {
    const { tasks } = await sandbox.job(jobId);
    const [task] = tasks;
    const mirror = place.mirrorOf(jobId, task?.taskId ?? '', 'stdout');
    await until(
      `the mirror of job ${jobId}`,
      () => fs.existsSync(mirror) && fs.readFileSync(mirror, 'utf8') === `of ${jobId}\n`,
    );
  }
});
