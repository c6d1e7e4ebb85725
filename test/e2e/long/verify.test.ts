/** `agent verify` of a job with many tasks: a listed file is downloaded once, whichever live files it may be. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { requestOf } from '../../support/e2e-job.ts';
import { Place } from '../../support/e2e-place.ts';

it('agent verify names each listed file that is not here, and ends with 1: exit 0 means that the original can go', async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  const job = await sandbox.submit({ tasks: [{}] });
  const [task] = job.tasks;
  if (task === undefined) throw new Error('a job has a task');
  fs.writeFileSync(task.files.stdout, 'a line\n');
  fs.writeFileSync(path.join(task.directory, 'early.dat'), 'a result');
  place.configure(sandbox, { watch: [requestOf(job)], results: { intervalSeconds: 86_400 } });
  const agent = await place.run();
  await place.mirrored(job, 'stdout');
  expect(await place.agent('sync', job.jobId)).toMatchObject({ code: 0 });
  await place.verified(job.jobId);
  fs.writeFileSync(path.join(task.directory, 'late.dat'), 'a result that nothing fetched');
  const { code, stdout } = await place.agent('verify', job.jobId);
  expect(stdout).toMatch(/^MISSING +\S*late\.dat: never fetched$/m);
  expect(code).toBe(1);

  // Results that are off are as little here as those that did not come; neither is the end of a file that grows.
  await agent.kill();
  fs.rmSync(path.join(task.directory, 'late.dat'));
  await place.verified(job.jobId);
  fs.appendFileSync(task.files.stdout, 'more');
  const behind = await place.agent('verify', job.jobId);
  expect(behind.stdout).toMatch(/^BEHIND +task \d+ stdout \(7 B; the server has 4 B more by now\)$/m);
  expect(behind.code).toBe(1);
  expect(await place.agent('watch', job.jobId, '--no-results', '--no-wait')).toMatchObject({ code: 0 });
  fs.rmSync(path.join(place.mirror, job.jobId, 'results'), { recursive: true });
  fs.writeFileSync(path.join(task.directory, 'off.dat'), 'a result that nothing will fetch');
  const off = await place.agent('verify', job.jobId);
  expect(off.stdout).toMatch(/^MISSING +\S*off\.dat: results of this job are off$/m);
  expect(off.code).toBe(1);
});
