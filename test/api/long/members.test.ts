/** What members of the agent's group see without the state, and what others are told. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { apiPlace } from '../../support/api-place.ts';
import { taskOf } from '../../support/e2e-job.ts';
import { until } from '../../support/e2e-until.ts';

test('a member sees what the user of the agent sees, and tail -f and wait end with the job, also beside a new agent', async (context) => {
  const { place, job, agent, as } = await apiPlace(context);
  const { jobId } = job;
  const { files } = taskOf(job);
  fs.writeFileSync(files.stdout, 'first\n');
  const result = path.join(path.dirname(files.stdout), 'result.dat');
  fs.writeFileSync(result, 'a result');
  await place.mirrored(job, 'stdout');
  const tail = as('member', 'tail', jobId, '-f', '--no-prefix');
  const wait = as('member', 'wait', jobId, '--json');
  await until('the first line', async () => tail.stdout.includes('first\n'));
  fs.appendFileSync(files.stdout, 'last\n');
  await place.mirrored(job, 'stdout');
  // They go on with the next agent.
  await agent.kill();
  await until('the absence of the agent', async () => wait.stderr.includes('waiting, for two minutes at most: '));
  await (await place.run()).logs('sockets listening');
  expect(await as('owner', 'unwatch', jobId, '--now').ended).toMatchObject({ code: 0 });
  expect(await tail.ended).toMatchObject({ code: 0, stdout: 'first\nlast\n' });
  expect(tail.stderr).toContain(`job ${jobId} is unwatched: no more lines`);
  const ended = await wait.ended;
  expect(ended, ended.stderr).toMatchObject({ code: 1 });
  expect(JSON.parse(ended.stdout)).toMatchObject({ exitCode: 1, jobs: [{ jobId, outcome: 'unproven' }] });

  for (const line of [
    ['status'],
    ['status', jobId],
    ['results', jobId],
    ['jobs'],
    ['notify', '--list'],
    ['verify', jobId],
  ]) {
    const shown = async (who: 'member' | 'owner') => {
      const ended = await as(who, ...line, '--json').ended;
      expect(ended, `${who}: ${line.join(' ')}: ${ended.stderr}`).toMatchObject({ code: 0, stderr: '' });
      return ended.stdout.replace(/"(freeBytes|pollAgeMs)": \d+/g, '"$1": 0');
    };
    // The agent works meanwhile.
    await until(`the same of ${line.join(' ')}`, async () => (await shown('member')) === (await shown('owner')));
    expect((await as('member', ...line).ended).stdout.split('\n').length).toBeGreaterThan(1);
  }
});

test('what changes something is for the user of the agent, and for api.controlGroup', async (context) => {
  const { place, sandbox, job, agent, sockets, as } = await apiPlace(context);
  const { jobId } = job;
  const other = await sandbox.submit({ tasks: [{}] });
  for (const [who, line, reason] of [
    ['member', ['sync', jobId], 'only the user nobody may change what the agent does'],
    ['other', ['status'], 'only the user nobody and members of the group nogroup may ask the agent'],
  ] as const) {
    const { code, stderr } = await as(who, ...line).ended;
    expect([code, stderr.replace(/\s+/g, ' ')]).toEqual([8, expect.stringContaining(reason)]);
  }
  expect(fs.statSync(path.join(sockets, 'read.sock')).mode & 0o777).toBe(0o660);
  expect(fs.statSync(path.join(sockets, 'control.sock')).mode & 0o777).toBe(0o600);

  const setGroup = (controlGroup: string) => {
    const config = JSON.parse(fs.readFileSync(place.configFile, 'utf8')) as { api: object };
    place.writeConfig(JSON.stringify({ ...config, api: { ...config.api, controlGroup } }));
  };
  const modeNow = () => fs.statSync(path.join(sockets, 'control.sock'), { throwIfNoEntry: false })?.mode ?? 0;
  // The agent is not in it; and there is none.
  for (const [group, hint] of [
    ['daemon', 'let the user of the agent be in the group daemon; a unit of systemd needs a drop-in'],
    ['no-such-group', 'set api.controlGroup to a group of this machine'],
  ] as const) {
    setGroup(group);
    const refusals = () => agent.logged('api.controlGroup cannot be used').map((line) => String(line['hint']));
    await until(hint, async () => refusals().some((each) => each.startsWith(hint)));
    await until('the socket', async () => (modeNow() & 0o777) === 0o600);
  }

  // A member of that group changes what the agent does; a job of another account is refused as to the user.
  setGroup('nogroup');
  await until('the group', async () => (modeNow() & 0o777) === 0o660);
  const watched = await as('member', 'watch', other.jobId).ended;
  expect(watched, watched.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining(`/${other.jobId}/live/`) });
  expect(await as('member', 'sync', other.jobId).ended).toMatchObject({ code: 0 });
  const none = await as('member', 'watch', '987654321').ended;
  expect(none.code).toBe(7);
  expect(none.stderr).toContain('the service has no job 987654321 of this user');
  expect(await as('member', 'unwatch', other.jobId, '--now').ended).toMatchObject({ code: 0 });
  expect(await as('member', 'unwatch', jobId).ended).toMatchObject({ code: 0 });
});
