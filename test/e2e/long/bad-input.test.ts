/** What people get wrong: each time the message names what it is about and what to do, and nothing is lost. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { taskOf } from '../../support/e2e-job.ts';
import { NOBODY, Place } from '../../support/e2e-place.ts';

it('without rights while the agent runs: the job says so, and goes on when they are back', async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  const passwordFile = path.join(place.directory, 'password');
  fs.copyFileSync(sandbox.passwordFile, passwordFile);
  if (process.getuid?.() === 0) fs.chownSync(passwordFile, NOBODY, NOBODY);
  place.giveUpRights(context);
  const job = await sandbox.submit({ tasks: [{}] });
  const task = taskOf(job);
  fs.writeFileSync(task.files.stdout, 'before\n');
  place.configure(
    { baseUrl: sandbox.baseUrl, username: sandbox.username, passwordFile },
    { results: { enabled: false } },
  );
  const agent = place.start(['run']);
  await agent.logs('agent ready', { jobs: 0 });
  fs.chmodSync(place.mirror, 0o500);
  const order = ['watch', job.jobId, '--task', task.taskId];
  const refused = await place.agent(...order);
  expect(refused).toMatchObject({ code: 8, signal: null, stdout: '' });
  expect(refused.stderr).toContain(`mirror.directory ${place.mirror} cannot be used`);
  expect(refused.stderr, 'a person can do without the stack').not.toMatch(/^ +at /m);
  fs.chmodSync(place.mirror, 0o700);
  expect(await place.agent(...order)).toMatchObject({ code: 0 });
  await place.mirrored(job, 'stdout');

  const mirror = place.mirrorOf(job.jobId, task.taskId, 'stdout');
  const live = path.dirname(mirror);
  fs.chmodSync(path.join(live, 'stdout.log'), 0o400);
  fs.appendFileSync(task.files.stdout, 'without rights\n');
  const said = await agent.logs('operation failed', { err: 'permission denied: ' });
  expect(said).toMatchObject({
    level: 'error',
    code: 'permission',
    scope: `job ${job.jobId} ${task.taskId}/stdout`,
  });
  const [shown] = (await place.status()).jobs;
  const error = shown?.files.find(({ file }) => file === 'stdout')?.error;
  expect(error).toMatchObject({ code: 'permission', message: expect.stringContaining(live) });
  expect(error?.hint).toContain('the right to open');
  fs.chmodSync(path.join(live, 'stdout.log'), 0o600);
  await place.mirrored(job, 'stdout');
});
