/** A service that fails at the start is reported at once, also where no job is followed. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { Place } from '../../support/e2e-place.ts';
import { until } from '../../support/e2e-until.ts';

it('a refused first sign-in is a warning in the log and a line in status, until the password is corrected', async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  const passwordFile = path.join(place.directory, 'password');
  fs.writeFileSync(passwordFile, 'no such one\n', { mode: 0o600 });
  place.configure({ ...sandbox, passwordFile });
  await place.agent('watch', '501');
  const synced = await place.agent('sync', '501');
  expect([synced.code, synced.stderr.split('the sign-in was refused').length]).toEqual([5, 2]);
  await place.agent('unwatch', '501', '--now');
  const agent = await place.run();
  await agent.logs('operation failed', { scope: 'the service', code: 'sign-in-refused', level: 'warn' });
  const shown = (await place.agent('status')).stdout;
  expect(shown).toContain('the service refuses the sign-in: the sign-in was refused');
  expect(shown).not.toContain('job states are not reported');
  const { outage } = JSON.parse((await place.agent('status', '--json')).stdout);
  expect(outage).toMatchObject({ code: 'sign-in-refused', hint: expect.stringContaining('auth.username') });
  // The command itself does not sign in again.
  const jobs = await place.agent('verify', '501');
  expect(jobs.stderr).not.toContain('next sign-in');

  fs.copyFileSync(sandbox.passwordFile, passwordFile);
  await agent.logs('signed in');
  await until('status without it', async () => !(await place.agent('status')).stdout.includes('the service'));
});
