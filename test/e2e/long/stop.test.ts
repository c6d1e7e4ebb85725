/** How the agent ends, and that there is only one. */
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { requestOf, submitQuietJob, taskOf } from '../../support/e2e-job.ts';
import { Place } from '../../support/e2e-place.ts';
import type { Program } from '../../support/e2e-program.ts';
import { until } from '../../support/e2e-until.ts';

const WRITER = fileURLToPath(new URL('../../support/e2e-writer.mjs', import.meta.url));

async function expectOrderlyEnd(agent: Program, signal: 'SIGTERM' | 'SIGINT'): Promise<void> {
  agent.signal(signal);
  expect(await agent.ended).toMatchObject({ code: 0, signal: null, stdout: '' });
  expect(agent.log.at(-1)).toMatchObject({ level: 'info', msg: 'stopped' });
  expect(agent.log.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([]);
}

it.concurrent('a stop in the middle of growth leaves everything committed, and the next start goes on', async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  const job = await sandbox.submit({ tasks: [{ command: [process.execPath, WRITER, '7'] }] });
  const task = taskOf(job);
  place.configure(sandbox, { watch: [requestOf(job)] });
  const bytesOf = () =>
    ['stdout', 'stderr', 'log', 'progress'].map((file) =>
      fs.existsSync(place.mirrorOf(job.jobId, task.taskId, file))
        ? fs.statSync(place.mirrorOf(job.jobId, task.taskId, file)).size
        : 0,
    );
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const before = bytesOf();
    const agent = await place.run();
    await until('all mirrors to grow', () => bytesOf().every((bytes, index) => bytes > (before[index] ?? 0)));
    await expectOrderlyEnd(agent, signal);
    const { agent: shown, jobs } = await place.status();
    expect(shown).toEqual({ running: false, pid: null });
    expect(jobs[0]?.files.map(({ bytes }) => bytes)).toEqual(bytesOf());
  }
  fs.writeFileSync(path.join(task.directory, 'stop'), '');
  await sandbox.finished(job.jobId);
  expect(await place.agent('sync', job.jobId)).toMatchObject({ code: 0 });
  for (const file of ['stdout', 'stderr', 'log', 'progress'] as const) await place.mirrored(job, file);
});

it.concurrent('calls that hang delay no stop', async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  const job = await sandbox.submit({ tasks: [{}] });
  const watch = [{ job: job.jobId, tasks: job.tasks.map(({ taskId }) => taskId) }];
  place.configure(sandbox, { watch, service: { timeoutSeconds: 3600 } });
  for (const operation of ['SignIn', 'DownloadPartsOfJobFilesFromCluster', 'ListChangedFilesForJob'] as const) {
    await sandbox.fault({ kind: 'hang', operation });
    const agent = await place.run();
    await until(`a ${operation} that hangs`, async () => (await sandbox.faultsApplied())[0] === 1);
    await expectOrderlyEnd(agent, 'SIGTERM');
    await sandbox.clearFaults();
  }
});

it.concurrent('a second signal ends it at once, and nothing is lost by it', async (context) => {
  const place = Place.make(context);
  const { sandbox, job, task } = await submitQuietJob(place);
  fs.writeFileSync(task.files.stdout, 'hello\n');
  place.configure(sandbox, { watch: [requestOf(job)] });
  const agent = await place.run();
  await place.mirrored(job, 'stdout');
  // Both signals wait while it is held, so that the second one finds the first one's work begun and not done.
  agent.signal('SIGSTOP');
  agent.signal('SIGTERM');
  agent.signal('SIGINT');
  agent.signal('SIGCONT');
  // The kernel delivers either of them first.
  expect([130, 143]).toContain((await agent.ended).code);
  fs.appendFileSync(task.files.stdout, 'and on\n');
  await place.run();
  await place.mirrored(job, 'stdout');
});

it.concurrent('a second agent on the same state names the first one and leaves it alone', async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  place.configure(sandbox);
  const first = await place.run();
  const second = await place.agent('run');
  expect(second).toMatchObject({ code: 4, signal: null, stdout: '' });
  expect(second.stderr).toContain(`another agent works on ${place.state} (pid ${first.pid})`);
  expect(second.stderr).toContain('its own state.directory');
  const job = await sandbox.submit({ tasks: [{}] });
  const foreground = place.start(['watch', job.jobId, '--foreground']);
  await first.logs('job followed', { jobId: job.jobId });
  foreground.signal('SIGINT');
  const { code, stderr } = await foreground.ended;
  expect(code).toBe(130);
  expect(stderr).toMatch(new RegExp(`job ${job.jobId} is watched\\n$`));
  expect(first.end).toBeUndefined();

  // Killed, it leaves no lock behind.
  await first.kill();
  expect((await place.status()).agent).toEqual({ running: false, pid: null });
  const third = await place.run();
  expect((await place.status()).agent).toEqual({ running: true, pid: third.pid });
});
