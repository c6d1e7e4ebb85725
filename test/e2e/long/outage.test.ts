/** A service that is away, that refuses, or that is slow for one job: said once, waited out, and no other job suffers. */
import fs from 'node:fs';
import { expect, it } from 'vitest';
import type { JobDescription } from '../../../simulator/control.ts';
import { requestOf } from '../../support/e2e-job.ts';
import { Place } from '../../support/e2e-place.ts';
import type { LogLine, Program } from '../../support/e2e-program.ts';
import { PATIENCE, until } from '../../support/e2e-until.ts';

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
