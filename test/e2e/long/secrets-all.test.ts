/** Whatever goes wrong: no password, token or session code in anything the agent writes or shows. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { Place } from '../../support/e2e-place.ts';
import {
  expectNoSecret,
  failingCalls,
  failingSignIns,
  goThrough,
  MARK,
  PASSWORD,
  traces,
} from '../../support/e2e-secrets.ts';
import { PATIENCE, until } from '../../support/e2e-until.ts';

it.concurrent('with a password and session codes', PATIENCE, async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  await sandbox.setUser({ username: sandbox.username, password: PASSWORD });
  await sandbox.setUser({ username: 'bob', password: 'of-bob', token: 'of-bob' });
  fs.writeFileSync(sandbox.passwordFile, `${PASSWORD}\n`);
  const job = await sandbox.submit({ tasks: [{}] });
  const foreign = await sandbox.submit({ owner: 'bob', tasks: [{}] });
  fs.writeFileSync(job.tasks[0]?.files.stdout ?? '', 'hello\n');
  const watch = [job, foreign].map(({ jobId, tasks }) => ({ job: jobId, tasks: tasks.map(({ taskId }) => taskId) }));
  place.configure(sandbox, { watch });
  const agent = await place.run();
  await place.mirrored(job, 'stdout');
  const codes = [await sandbox.sessionCode(PASSWORD)];

  await goThrough(sandbox, agent, failingCalls(codes[0] ?? ''));
  for (const sessionLost of ['fault', 400, 401, 403] as const) {
    await sandbox.setHabits({ sessionLost, sessionLostText: `${MARK}: Session code {code} is not valid` });
    await sandbox.expireSessions();
    const { signIns } = await sandbox.counters();
    await until('a new sign-in', async () => (await sandbox.counters()).signIns > signIns);
    codes.push(await sandbox.sessionCode(PASSWORD));
  }
  // The session before this one is still a secret.
  await goThrough(sandbox, agent, failingCalls(codes.at(-2) ?? '').slice(2, 4));
  // The job of another user looks like a lost session for ever: its error is kept.
  const errorOf = async (jobId: string) => (await place.status(jobId)).jobs[0]?.error;
  await until('the error of the foreign job', async () => (await errorOf(foreign.jobId))?.code.startsWith('session'));
  const shown = (await place.agent('status', foreign.jobId)).stdout;
  expect(shown).toContain(MARK);
  expect(shown).toContain('session');
  expect(await place.agent('sync', foreign.jobId)).toMatchObject({ code: 5 });
  await sandbox.expireSessions();
  await goThrough(sandbox, agent, failingSignIns(PASSWORD).slice(0, 1), 1);
  expect((await place.agent('sync', job.jobId)).code).toBeGreaterThan(0);

  const before = traces(place, agent);
  await agent.kill();
  const found = new Map([...before, ...traces(place, agent)]);
  const all = Buffer.concat([...found.values()]).toString('latin1');
  expect(all, 'the words of the server arrive').toContain(MARK);
  expect(found.has(path.join(place.state, 'agent.db-wal')), 'the state was read as a kill leaves it').toBe(true);
  expect(new Set(codes).size, 'sessions were lost').toBeGreaterThan(1);
  const { controlToken, password } = sandbox.secrets;
  expectNoSecret(found, [PASSWORD, password, controlToken, ...codes]);
});
