/** `agent sandbox` on the built program: what it prints is a configuration, and it ends with the processes of its jobs. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it, type TestContext } from 'vitest';
import { parse } from 'yaml';
import { Place, readIfThere } from '../../support/e2e-place.ts';
import { Program, processesIn } from '../../support/e2e-program.ts';
import { until } from '../../support/e2e-until.ts';

it('agent sandbox speaks the release of REST that is asked for, and prints the configuration for it', async (context) => {
  const place = Place.make(context);
  const directory = path.join(place.directory, 'cluster');
  const options = ['--release', '4.2.7'];
  const program = new Program(['sandbox', '--directory', directory, ...options], { cwd: place.directory });
  context.onTestFinished(async () => void (await program.kill()));
  await until('its configuration', () => program.stdout.includes('agent run'));
  const { service, auth } = parse(program.stdout);
  expect(service).toEqual({ protocol: 'rest', baseUrl: expect.stringContaining('http://127.0.0.1:') });
  const url = `${service.baseUrl}/heappe`;
  expect(program.stdout).toContain(`# REST           ${url} as release 4.2\n`);
  const Credentials = { Username: auth.username, Password: fs.readFileSync(auth.passwordFile, 'utf8').trim() };
  const signedIn = await fetch(`${url}/UserAndLimitationManagement/AuthenticateUserPassword`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ Credentials }),
  });
  expect(await signedIn.json()).toMatch(/^[0-9a-f-]{36}$/);
});

const JOB = /^# Job \d+ runs for 10 min: agent (watch .*)$/m;

/** `agent sandbox --job`, once its job was started. */
async function startWithJob(place: Place, { onTestFinished }: TestContext) {
  const directory = path.join(place.directory, 'cluster');
  const program = new Program(['sandbox', '--directory', directory, '--job'], { cwd: place.directory });
  onTestFinished(async () => {
    program.signal('SIGTERM');
    await program.ended;
    // The processes of its jobs write to the directory for a moment more.
    await until('the processes of its jobs to end', () => processesIn(directory).length === 0);
  });
  const [, watch = ''] = await until('its job', () => JOB.exec(program.stdout) ?? undefined);
  return { directory, program, watch };
}

it('agent sandbox is followed by what it prints, and ends with the processes of its jobs', async (context) => {
  const place = Place.make(context);
  const { directory, program, watch } = await startWithJob(place, context);
  for (const name of ['password', 'token', 'control-token'])
    expect(fs.statSync(path.join(directory, 'secrets', name)).mode & 0o777).toBe(0o600);
  const [, baseUrl] = /^ {2}baseUrl: "(.*)"$/m.exec(program.stdout) ?? [];
  expect((await fetch(`${baseUrl}/sandbox/jobs`)).status, 'its control needs the token').toBe(401);

  place.writeConfig(program.stdout);
  expect(await place.agent('check')).toMatchObject({ code: 0, stderr: '' });
  await place.run();
  // It waits ten seconds for the tasks; on a busy machine they are found later.
  const mirrors = await until('four mirrors of each of three tasks, which the command does not name', async () => {
    const watched = await place.agent(...watch.split(' '));
    expect(watched).toMatchObject({ code: 0 });
    const lines = watched.stdout.trim().split('\n');
    return lines.length === 12 && lines;
  });
  await until('a mirror to grow', () => mirrors.some((mirror) => (readIfThere(mirror)?.length ?? 0) > 0));
  program.signal('SIGTERM');
  expect(await program.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
});
