/** What the middleware says of a job leads to its end, and to another beginning; kills at any moment change nothing. */
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { placeWithJob, taskOf } from '../../support/e2e-job.ts';
import { until } from '../../support/e2e-until.ts';

/** The last bytes of a job may come so long after its end. Nothing else is waited for as long: looks begin late. */
const LATE_BYTES_MS = 60_000;

it.concurrent('a job is settled when it is over and its last bytes came, over kills, and goes on when it is queued again', async (context) => {
  // The last bytes of a task that runs are not flushed.
  const script = 'echo begun; seq 2000; while [ ! -e ../go ]; do sleep 0.1; done; echo the last line';
  const spec = { tasks: [{ command: ['sh', '-c', script] }] };
  const { place, sandbox, job, mirrors } = await placeWithJob(context, { spec, habits: { flushSeconds: 10 } });
  const { jobId } = job;
  const [stdout = ''] = mirrors();
  const standing = async () => (await place.status(jobId)).jobs[0];
  const shows = (text: string) => until(text, () => fs.readFileSync(stdout, 'utf8').includes(text));
  const first = await place.run();
  expect(await place.agent('watch', jobId)).toMatchObject({ code: 0 });
  await shows('begun\n');
  const tail = place.start(['tail', jobId, '-f']);
  fs.writeFileSync(path.join(taskOf(job).directory, '../go'), '');
  await sandbox.finished(jobId);
  // Each order lets the agent look at once.
  await place.agent('watch', jobId, '--no-wait');
  await first.logs('job state changed', { jobId, jobState: 'Finished' });
  await first.kill();
  // The last bytes come behind it; the time that is waited for more goes on over each start.
  const second = await place.run();
  await shows('the last line\n');
  await second.kill();
  const after = await standing();
  expect(after).toMatchObject({ state: 'watched', jobState: 'Finished' });
  const third = await place.run();
  await sleep(LATE_BYTES_MS - 5_000);
  const end = await third.logs('complete pass ended', { jobId, state: 'settled' });
  const waitedMs = Date.parse(String(end['time'])) - (after?.jobStateSince ?? Number.NaN);
  expect(waitedMs).toBeGreaterThanOrEqual(LATE_BYTES_MS);
  const settled = await standing();
  expect(settled).toMatchObject({ state: 'settled' });
  expect(settled?.files.filter(({ verified }) => !verified)).toEqual([]);
  expect(await tail.ended).toMatchObject({ code: 0, stderr: expect.stringContaining(`job ${jobId} is Finished`) });
  expect(tail.stdout).toContain('the last line\n');
  // Results are off, so one listed file is not here.
  const verified = await place.agent('verify', jobId);
  expect(verified.stdout.match(/^equal /gm)).toHaveLength(4);
  expect(verified.stdout).not.toMatch(/^(?:DIFFERS|BEHIND)/m);

  const before = fs.statSync(stdout).size;
  fs.rmSync(path.join(taskOf(job).directory, '../go'));
  await sandbox.change(jobId, 'requeue');
  const other = await sandbox.submit({ tasks: [{}] });
  expect(await place.agent('watch', other.jobId)).toMatchObject({ code: 0 });
  await until('it to be followed', async () => (await standing())?.state === 'watched');
  fs.writeFileSync(path.join(taskOf(job).directory, '../go'), '');
  await sandbox.finished(jobId);
  await until('what it wrote once more', () => fs.statSync(stdout).size === 2 * before);
  await place.mirrored(job, 'stdout');
});
