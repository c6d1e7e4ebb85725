/** Whatever goes wrong: no password, token or session code in anything the agent writes or shows. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import type { FaultRule } from '../../src/sandbox/faults.ts';
import { Place } from '../support/e2e-place.ts';
import type { LogLine, Program } from '../support/e2e-program.ts';
import type { SandboxProcess } from '../support/e2e-sandbox.ts';
import { PATIENCE, until } from '../support/e2e-until.ts';

/** With characters that are written in another way in JSON, XML and URLs; either half alone would be a leak, too. */
const PASSWORD = 'ključ&<"Vault">%/+ 0123456789abcdef';
const TOKEN = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJl-_x';
/** Stands beside the secret in what a server says, to show that its words arrive where they may. */
const MARK = 'words-of-the-server';

/** Ways in which a call fails, with the secret of the call in what the server says. */
const failingCalls = (secret: string): FaultRule[] => {
  const said = `${MARK} ${secret}`;
  return [
    { kind: 'fault', text: said },
    { kind: 'fault', text: `Session code ${secret} is not valid` },
    { kind: 'http', status: 500, body: said },
    { kind: 'http', status: 503, headers: { 'retry-after': '0' }, body: said },
    { kind: 'http', status: 302, headers: { location: `http://127.0.0.1:9/${encodeURIComponent(said)}` } },
    { kind: 'http', status: 404, headers: { 'content-type': 'text/html' }, body: `<html><p>${said}</p></html>` },
    { kind: 'http', status: 401, body: said },
    { kind: 'body', body: said },
    { kind: 'body', body: `<a>${said}`, contentType: 'application/soap+xml' },
    { kind: 'reset', afterBytes: 40 },
    { kind: 'truncate', afterBytes: 60 },
  ];
};

const failingSignIns = (secret: string): FaultRule[] =>
  [
    { kind: 'fault', text: `${MARK} ${secret}` } as const,
    { kind: 'http', status: 500, body: `${MARK} ${secret}` } as const,
    { kind: 'body', body: JSON.stringify({ Unknown: secret, Password: secret }) } as const,
    { kind: 'body', body: `{"broken": "${secret}` } as const,
  ].map((fault) => ({ ...fault, operation: 'SignIn' as const }));

/** Lets each rule meet the agent until its failure was said, and said again. */
async function goThrough(sandbox: SandboxProcess, agent: Program, rules: readonly FaultRule[]): Promise<void> {
  const failures = () => agent.log.filter((line) => line['err'] !== undefined).length;
  for (const rule of rules) {
    const before = failures();
    await sandbox.fault(rule);
    await until(`${JSON.stringify(rule)} to be complained of`, async () => {
      const [applied = 0] = await sandbox.faultsApplied();
      return applied >= 2 && failures() >= before + 2;
    });
    await sandbox.clearFaults();
  }
}

/** Every form in which a secret could stand in a file. */
function formsOf(secret: string): string[] {
  const halves = [secret, secret.slice(0, secret.length / 2), secret.slice(secret.length / 2)];
  return halves.flatMap((text) => [
    text,
    JSON.stringify(text).slice(1, -1),
    encodeURIComponent(text),
    text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;'),
    Buffer.from(text).toString('base64').replace(/=+$/, ''),
    Buffer.from(text).toString('hex'),
  ]);
}

/** All that the agent left: what its commands said, how they were called, and every file it wrote, by name. */
function traces(place: Place, running: Program): Map<string, Buffer> {
  const traces = new Map<string, Buffer>();
  for (const [index, { args, stdout, stderr }] of place.programs.entries()) {
    traces.set(`agent ${args.join(' ')} (${index})`, Buffer.from(`${args.join('\0')}\n${stdout}\n${stderr}`));
  }
  for (const name of ['cmdline', 'environ']) {
    const file = `/proc/${running.pid}/${name}`;
    if (fs.existsSync(file)) traces.set(file, fs.readFileSync(file));
  }
  for (const directory of [place.state, place.mirror]) {
    for (const entry of fs.readdirSync(directory, { recursive: true, withFileTypes: true })) {
      const file = path.join(entry.parentPath, entry.name);
      if (entry.isFile()) traces.set(file, fs.readFileSync(file));
    }
  }
  return traces;
}

function expectNoSecret(found: ReadonlyMap<string, Buffer>, secrets: readonly string[]): void {
  const leaks = [...found].flatMap(([name, bytes]) =>
    secrets.flatMap(formsOf).flatMap((form) => {
      const at = bytes.indexOf(form);
      return at < 0 ? [] : [`${name}: ...${bytes.toString('latin1', Math.max(0, at - 80), at)}[${form}]`];
    }),
  );
  expect(leaks).toEqual([]);
}

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
  // The job of another user looks like a lost session for ever: its error is kept.
  const isForeign = ({ scope, err }: LogLine) => scope === `job ${foreign.jobId}` && String(err).includes(MARK);
  await until('the error of the foreign job', () => agent.log.some(isForeign));
  const shown = (await place.agent('status', foreign.jobId)).stdout;
  expect(shown).toContain(MARK);
  expect(shown).toContain('session');
  expect(await place.agent('sync', foreign.jobId)).toMatchObject({ code: 5 });
  await sandbox.expireSessions();
  await goThrough(sandbox, agent, failingSignIns(PASSWORD).slice(0, 1));
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
  expect(await place.agent('verify', job.jobId)).toMatchObject({ code: 0 });
  const before = traces(place, agent);
  await agent.kill();
  const found = new Map([...before, ...traces(place, agent)]);
  expect(Buffer.concat([...found.values()]).toString('latin1')).toContain(MARK);
  expectNoSecret(found, [TOKEN, sandbox.secrets.token, sandbox.secrets.controlToken]);
});

for (const secret of ['password', 'token'] as const) {
  it.concurrent(`when no sign-in with a ${secret} succeeds`, PATIENCE, async (context) => {
    const place = Place.make(context);
    const sandbox = await place.startSandbox();
    const [file, value] = secret === 'password' ? [sandbox.passwordFile, PASSWORD] : [sandbox.tokenFile, TOKEN];
    fs.writeFileSync(file, value);
    place.configure(sandbox, {
      auth: {
        method: secret === 'password' ? 'password' : 'external-token',
        passwordFile: undefined,
        [`${secret}File`]: file,
      },
    });
    const job = await sandbox.submit({ tasks: [{}] });
    expect(await place.agent('watch', job.jobId)).toMatchObject({ code: 0 });
    for (const rule of failingSignIns(value)) {
      await sandbox.fault(rule);
      expect((await place.agent('sync', job.jobId)).code).toBeGreaterThan(0);
      await sandbox.clearFaults();
    }
    const refused = place.start(['sync', job.jobId]);
    expect(await refused.ended).toMatchObject({ code: 5 });
    const found = traces(place, refused);
    expect(Buffer.concat([...found.values()]).toString('latin1')).toContain(MARK);
    expectNoSecret(found, [value]);
  });
}
