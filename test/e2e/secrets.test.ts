/** Whatever goes wrong: no password, token or session code in anything the agent writes or shows. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { Place } from '../support/e2e-place.ts';
import {
  expectNoSecret,
  failingCalls,
  failingSignIns,
  goThrough,
  MARK,
  PASSWORD,
  TOKEN,
  traces,
} from '../support/e2e-secrets.ts';
import { PATIENCE, until } from '../support/e2e-until.ts';

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

it.concurrent('with a token that is shown with each call', PATIENCE, async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  await sandbox.setUser({ username: sandbox.username, token: TOKEN });
  await sandbox.setHabits({ signInAnswer: 'header' });
  fs.writeFileSync(sandbox.tokenFile, TOKEN);
  const job = await sandbox.submit({ tasks: [{}] });
  fs.writeFileSync(job.tasks[0]?.files.stdout ?? '', 'hello\n');
  place.configure(sandbox, {
    auth: { method: 'openid', passwordFile: undefined, tokenFile: sandbox.tokenFile },
    watch: [{ job: job.jobId, tasks: job.tasks.map(({ taskId }) => taskId) }],
  });
  const agent = await place.run();
  await place.mirrored(job, 'stdout');
  await goThrough(sandbox, agent, failingCalls(TOKEN));
  await place.verified(job.jobId);
  const before = traces(place, agent);
  await agent.kill();
  const found = new Map([...before, ...traces(place, agent)]);
  expect(Buffer.concat([...found.values()]).toString('latin1')).toContain(MARK);
  expectNoSecret(found, [TOKEN, sandbox.secrets.token, sandbox.secrets.controlToken]);
});

it.concurrent('with a transfer method that quotes them', PATIENCE, async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  const job = await sandbox.submit({ tasks: [{}] });
  fs.writeFileSync(path.join(path.dirname(job.tasks[0]?.files.stdout ?? ''), 'result.txt'), 'a result\n');
  const watch = [{ job: job.jobId, tasks: job.tasks.map(({ taskId }) => taskId) }];
  place.configure(sandbox, { watch, results: { transfer: 'direct' } });
  await sandbox.setHabits({ reuseSession: true });
  const code = await sandbox.sessionCode();
  const key = `-----BEGIN OPENSSH PRIVATE KEY-----\n${'b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAAB'.repeat(4)}\n-----END`;
  const method = (name: string) =>
    `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><GetFileTransferMethodResponse xmlns="http://sandbox.example.org/"><GetFileTransferMethodResult><serverHostname>host</serverHostname><sharedBasepath>/${MARK}/${name}</sharedBasepath><protocol>NetworkShare</protocol><credentials><username>u</username><privateKey>${key}</privateKey></credentials></GetFileTransferMethodResult></GetFileTransferMethodResponse></s:Body></s:Envelope>`;
  const body = method(`${code.slice(1)} ${key.slice(40, 90)}`);
  await sandbox.fault({ kind: 'body', operation: 'GetFileTransferMethod', body, contentType: 'text/xml' });
  const agent = await place.run();
  const isRefused = async () => JSON.stringify(await place.status(job.jobId)).includes('"fallback":"');
  await until('the method to be of no use', isRefused);
  expect((await place.agent('status', job.jobId)).stdout).toContain('by the service, not directly');
  await agent.kill();
  // The path has to be given back as it came, so the state has it, but never the key.
  const found = traces(place, agent);
  const shown = [...found].filter(([name]) => !path.basename(name).startsWith('agent.db'));
  expect(Buffer.concat(shown.map(([, bytes]) => bytes)).toString('latin1')).toContain(MARK);
  expectNoSecret(new Map(shown), [code, key.slice(36, -8)]);
  expect([...found.values()].some((bytes) => bytes.includes(key.slice(100, 150)))).toBe(false);
});
