/** A service that asks to be left alone for a day: an hour of that is granted, and said wherever a person looks. */
import fs from 'node:fs';
import { expect, it } from 'vitest';
import { requestOf, submitQuietJob } from '../../support/e2e-job.ts';
import { Place } from '../../support/e2e-place.ts';
import { PATIENCE, until } from '../../support/e2e-until.ts';

const HOUR_MS = 3_600_000;
const A_DAY = { 'retry-after': '86400' };

it.concurrent.for([
  ['a call', 'DownloadPartsOfJobFilesFromCluster', 429, 'rate-limited'],
  ['a call', 'DownloadPartsOfJobFilesFromCluster', 503, 'unavailable'],
  ['the sign-in', 'SignIn', 429, 'rate-limited'],
] as const)('%s that is to wait for a day (%s, %i) waits for an hour and says so', PATIENCE, async (row, context) => {
  const [, operation, status, code] = row;
  const place = Place.make(context);
  const { sandbox, job, task } = await submitQuietJob(place);
  fs.writeFileSync(task.files.stdout, 'hello\n');
  place.configure(sandbox, { watch: [requestOf(job)], results: { enabled: false } });
  await sandbox.fault({ kind: 'http', operation, status, headers: A_DAY, times: 1 });

  const startedAt = Date.now();
  const agent = await place.run();
  const said = await agent.logs('operation failed', { retryAt: 'T' });
  const waitsMs = Date.parse(String(said['retryAt'])) - startedAt;
  expect(waitsMs).toBeGreaterThan(0.8 * HOUR_MS);
  expect(waitsMs).toBeLessThan(HOUR_MS + (Date.now() - startedAt));
  expect(said).toMatchObject({ level: 'warn', scope: 'the service', code });

  const error = await until('the state to have it', async () => (await place.status()).jobs[0]?.error ?? undefined);
  expect(error).toMatchObject({ code, retryAt: Date.parse(String(said['retryAt'])) });
  const page = /next attempt in (\d+) min, at (\d\d:\d\d:\d\d)\)/.exec((await place.agent('status')).stdout);
  expect(Number(page?.[1])).toBeGreaterThan(45);
  expect(page?.[2]).toBe(new Date(error.retryAt ?? 0).toTimeString().slice(0, 8));
  expect((await place.agent('status', job.jobId)).stdout).toContain('next attempt in ');

  // An operator who knows better has it tried at once.
  agent.signal('SIGHUP');
  await place.mirrored(job, 'stdout');
  await until('the error to go', async () => (await place.status()).jobs[0]?.error === null);
});
