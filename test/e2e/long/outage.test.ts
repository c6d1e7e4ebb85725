/** A service that is away, that refuses, or that is slow for one job: said once, waited out, and no other job suffers. */
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { JobDescription } from '../../../simulator/control.ts';
import type { FaultEffect } from '../../../simulator/faults.ts';
import { requestOf } from '../../support/e2e-job.ts';
import { Place } from '../../support/e2e-place.ts';
import type { LogLine, Program } from '../../support/e2e-program.ts';
import { PATIENCE, until } from '../../support/e2e-until.ts';
import { freePort } from '../../support/free-port.ts';

function write({ tasks }: JobDescription, text: string): void {
  for (const { files } of tasks) fs.appendFileSync(files.stdout, text);
}

const complaints = (agent: Program): LogLine[] =>
  agent.log.filter(({ level }) => level === 'warn' || level === 'error');

/** Waits until the agent met a failure so often; how `status` shows a job then. */
async function failing(
  place: Place,
  agent: Program,
  { code, times, jobId }: { code: string; times: number; jobId: string },
) {
  await until(`${code} ${times} times`, () => agent.log.filter((line) => line['code'] === code).length >= times);
  const job = (await place.status()).jobs.find((one) => one.jobId === jobId);
  if (job === undefined) throw new Error(`status does not show job ${jobId}`);
  return job;
}

it.concurrent('a port that nobody listens on is said once, and its end too', PATIENCE, async (context) => {
  const place = Place.make(context);
  const port = await freePort();
  const before = await place.startSandbox(port);
  const spec = { jobId: '501', tasks: [{ taskId: '9001', specificationId: '77' }] };
  const job = await before.submit(spec);
  write(job, 'before the outage\n');
  await before.stop();

  place.configure(before, { watch: [requestOf(job)] });
  const agent = await place.run();
  const shown = await failing(place, agent, { code: 'unreachable', times: 5, jobId: job.jobId });
  expect(shown.error).toMatchObject({
    code: 'unreachable',
    hint: expect.stringContaining('the address in the configuration'),
  });
  expect(shown.error?.message).toContain(`127.0.0.1:${port}`);
  expect(complaints(agent)).toMatchObject([{ level: 'warn', code: 'unreachable', scope: 'the service' }]);
  const synced = await place.agent('sync', job.jobId);
  expect(synced).toMatchObject({ code: 6, stdout: '' });
  expect(synced.stderr).toContain(`127.0.0.1:${port}`);

  // The cluster comes up, with another password, on the same port; the agent goes on by itself.
  await (await place.startSandbox(port)).submit(spec);
  write(job, 'after it\n');
  await place.mirrored(job, 'stdout');
  const over = await agent.logs('operation recovered', { scope: 'the service' });
  expect(over).toMatchObject({ level: 'info', code: 'unreachable' });
  expect(over['failures']).toBeGreaterThanOrEqual(4);
  // The pass that was asked for fails by itself.
  expect(complaints(agent).map(({ scope }) => scope)).toEqual(['the service', `job ${job.jobId} pass`]);
  await until('the error to go', async () => (await place.status()).jobs.every(({ error }) => error === null));
});

it.concurrent(
  'a wrong password is reported with what to mend, and not tried again and again',
  PATIENCE,
  async (context) => {
    const place = Place.make(context);
    const sandbox = await place.startSandbox();
    const job = await sandbox.submit({ tasks: [{}] });
    write(job, 'hello\n');
    place.configure(sandbox, { watch: [requestOf(job)] });
    await sandbox.setUser({ username: sandbox.username, password: 'the-new-password' });

    const startedAt = performance.now();
    const agent = await place.run();
    const shown = await failing(place, agent, { code: 'sign-in-refused', times: 12, jobId: job.jobId });
    expect(shown.error?.code).toBe('sign-in-refused');
    expect(shown.error?.hint).toContain(sandbox.passwordFile);
    expect(complaints(agent)).toMatchObject([{ level: 'warn', code: 'sign-in-refused' }]);
    const asked = await place.agent('sync', job.jobId);
    expect(asked).toMatchObject({ code: 5, stdout: '' });
    expect(asked.stderr).toContain(sandbox.passwordFile);
    // Pauses of 5 s and more, each at least three quarters of that: polls, which are many more, fail without a call.
    const { signInsRefused, calls } = await sandbox.counters();
    expect(signInsRefused).toBeLessThanOrEqual(2 + (performance.now() - startedAt) / 3_750);
    expect(Object.values(calls).every((count) => count === 0)).toBe(true);

    // Mended, the file is tried at once.
    fs.writeFileSync(sandbox.passwordFile, 'the-new-password\n');
    await place.mirrored(job, 'stdout');
    await agent.logs('operation recovered', { scope: 'the service' });
    agent.signal('SIGTERM');
    await agent.ended;

    await sandbox.setUser({ username: sandbox.username, password: 'yet-another-password' });
    await sandbox.expireSessions();
    const alone = await place.agent('sync', job.jobId);
    expect(alone).toMatchObject({ code: 5, stdout: '' });
    expect(alone.stderr).toContain('the sign-in was refused');
  },
);

it.concurrent('a job that does not exist is shown with what to do, and the others go on', PATIENCE, async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  const job = await sandbox.submit({ tasks: [{}] });
  place.configure(sandbox, { watch: [{ job: '404404', tasks: ['1'] }, requestOf(job)] });
  const agent = await place.run();
  write(job, 'one\n');
  await place.mirrored(job, 'stdout');
  const { state, error } = await failing(place, agent, { code: 'fault', times: 4, jobId: '404404' });
  expect(state).toBe('watched');
  expect(error).toMatchObject({ code: 'fault', message: expect.stringContaining('404404 does not exist') });
  expect(error?.hint).toContain('check the job id');
  write(job, 'two\n');
  await place.mirrored(job, 'stdout');
  // Once for each of its tasks that fail: the polls, and the results.
  const scopes = complaints(agent).map(({ scope }) => scope);
  expect(scopes).toContain('job 404404');
  expect(new Set(scopes).size).toBe(scopes.length);
  expect(complaints(agent).every(({ scope, code }) => /^job 404404\b/.test(String(scope)) && code === 'fault')).toBe(
    true,
  );
  expect(await place.agent('sync', '404404')).toMatchObject({ code: 6, stdout: '' });
  expect((await place.status()).jobs.find(({ jobId }) => jobId === job.jobId)?.error).toBeNull();
  expect((await place.agent('status', '404404')).stdout).toContain('404404 does not exist');
  expect(await place.agent('unwatch', '404404', '--now')).toMatchObject({ code: 0 });
});

/** Each holds a place among the calls for longer than a test waits for anything. */
const SLOW = {
  hangs: { kind: 'hang' },
  'answers late': { kind: 'delay', ms: 3_600_000 },
  drips: { kind: 'drip', bytes: 1, everyMs: 1_000 },
} as const satisfies Record<string, FaultEffect>;

const slowJobs: { concurrency: number; ways: (keyof typeof SLOW)[] }[] = [
  { concurrency: 2, ways: ['hangs'] },
  { concurrency: 4, ways: ['hangs', 'answers late', 'drips'] },
];

describe.concurrent('among calls', PATIENCE, () => {
  it.for(slowJobs)(
    '$concurrency at a time, a job that $ways delays no other',
    async ({ concurrency, ways }, context) => {
      const place = Place.make(context);
      const sandbox = await place.startSandbox();
      const slow: JobDescription[] = [];
      for (const way of ways) {
        const job = await sandbox.submit({ tasks: [{}] });
        await sandbox.fault({ ...SLOW[way], jobId: job.jobId });
        slow.push(job);
      }
      const good = await sandbox.submit({ tasks: [{}] });
      place.configure(sandbox, {
        service: { concurrency, timeoutSeconds: 3600 },
        watch: [...slow, good].map(requestOf),
      });
      for (const job of slow) write(job, 'nobody hears of it\n');
      await place.run();
      await until('each to be asked for', async () => (await sandbox.faultsApplied()).every((applied) => applied > 0));
      for (let round = 1; round <= 5; round++) {
        write(good, `round ${round}\n`);
        await place.mirrored(good, 'stdout');
      }
      // A command for the good job is not held up either.
      expect(await place.agent('sync', good.jobId)).toMatchObject({ code: 0 });
      for (const { jobId, tasks } of slow) {
        expect(fs.statSync(place.mirrorOf(jobId, tasks[0]?.taskId ?? '', 'stdout')).size).toBe(0);
      }
    },
  );
});
