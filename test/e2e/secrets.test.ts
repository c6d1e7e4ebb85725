/** Whatever goes wrong: no password, token or session code in anything the agent writes or shows. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import type { FaultRule } from '../../src/sandbox/faults.ts';
import { Place } from '../support/e2e-place.ts';
import type { Program } from '../support/e2e-program.ts';
import type { SandboxService } from '../support/e2e-sandbox.ts';
import { PATIENCE, until } from '../support/e2e-until.ts';

/** With characters that are written in another way in JSON, XML and URLs; either half alone would be a leak, too. */
const PASSWORD = 'ključ&<"Vault">%/+ 0123456789abcdef';
const TOKEN = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJl-_x';
/** Stands beside the secret in what a server says, to show that its words arrive where they may. */
const MARK = 'words-of-the-server';

const hexOf = (text: string) => Buffer.from(text).toString('hex');
const inPercent = (text: string) => hexOf(text).replaceAll(/../g, '%$&');
const inBase64 = (text: string) => Buffer.from(text).toString('base64').replace(/=+$/, '');

/** Parts of a secret, and other ways to write it: three of them at a time fit into what is quoted of a fault. */
const quotationsOf = (secret: string): string[] =>
  [
    [secret.slice(0, -1), secret.slice(1).toUpperCase(), secret.slice(3, -3).replaceAll(/.{6}/gu, '$& ')],
    [inBase64(secret), inBase64(`:${secret.slice(0, -1)}`), Buffer.from(`alice:${secret}`).toString('base64url')],
    [
      hexOf(secret),
      hexOf(secret.slice(1))
        .toUpperCase()
        .replaceAll(/..(?=.)/g, '$&-'),
    ],
    [inPercent(secret), JSON.stringify(JSON.stringify(secret))],
  ].map((some) => some.join(' / '));

/** Ways in which a call fails, with the secret of the call in what the server says. */
const failingCalls = (secret: string): FaultRule[] => {
  const said = `${MARK} ${secret}`;
  return [
    { kind: 'fault', text: said },
    { kind: 'fault', text: `Session code ${secret} is not valid` },
    ...quotationsOf(secret).map((text): FaultRule => ({ kind: 'fault', text: `${MARK} ${text}` })),
    { kind: 'http', status: 500, body: `${MARK} ${secret.slice(0, -1)}` },
    { kind: 'body', body: `<title>${inBase64(secret)}</title>`, contentType: 'text/html' },
    {
      kind: 'body',
      body: `<${hexOf(secret)} xmlns="urn:${secret.replaceAll(/[^a-z0-9-]/g, '')}"/>`,
      contentType: 'text/xml',
    },
    { kind: 'body', body: 'x', contentType: `text/${hexOf(secret)}` },
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
    ...quotationsOf(secret).map((text) => ({ kind: 'http', status: 500, body: `${MARK} ${text}` }) as const),
    { kind: 'body', body: JSON.stringify({ Unknown: secret, Password: secret }) } as const,
    { kind: 'body', body: `{"broken": "${secret}` } as const,
  ].map((fault) => ({ ...fault, operation: 'SignIn' as const }));

/** Lets each rule meet the agent until its failure was said, and said again. */
async function goThrough(sandbox: SandboxService, agent: Program, rules: readonly FaultRule[]): Promise<void> {
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

/** What of a secret must stand nowhere: eight characters in a row, as they are or written in another way. */
function runsOf(secret: string): Set<string> {
  const bytes = Buffer.from(secret);
  const runs = new Set<string>();
  const add = (form: string, length: number) => {
    for (let at = 0; at + length <= form.length; at++) runs.add(form.slice(at, at + length).toLowerCase());
  };
  add(bytes.toString('latin1'), 8);
  add(JSON.stringify(secret).slice(1, -1), 8);
  add(encodeURIComponent(secret), 12);
  add(secret.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;'), 12);
  add(hexOf(secret), 16);
  add(inPercent(secret), 24);
  for (const before of ['', ':', '::']) add(inBase64(`${before}${secret}`).slice(before.length * 2), 10);
  return runs;
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
  const leaks = [...found].flatMap(([name, bytes]) => {
    const text = bytes.toString('latin1').toLowerCase();
    return secrets
      .flatMap((secret) => [...runsOf(secret)])
      .flatMap((run) => {
        const at = text.indexOf(run);
        return at < 0 ? [] : [`${name}: ...${text.slice(Math.max(0, at - 80), at)}[${run}]`];
      });
  });
  expect(leaks.slice(0, 10)).toEqual([]);
}

/** Says with every command what the failures were, while the service quotes `secret`. */
async function askAround(place: Place, sandbox: SandboxService, jobId: string, secret: string): Promise<void> {
  for (const [index, text] of quotationsOf(secret).entries()) {
    await sandbox.fault({ kind: 'fault', text: `${MARK}-${index} ${text}` });
    for (const args of [
      ['check', '--job', jobId],
      ['verify', jobId],
      ['verify', '--json', jobId],
      ['sync', jobId],
    ]) {
      const { code, stdout, stderr } = await place.agent(...args);
      expect(code, args.join(' ')).toBeGreaterThan(0);
      expect(`${stdout}${stderr}`, args.join(' ')).toContain(`${MARK}-${index}`);
    }
    await until('the error of the job', async () =>
      (await place.status(jobId)).jobs[0]?.error?.message.includes(`${MARK}-${index}`),
    );
    for (const args of [[jobId], ['--json']])
      expect((await place.agent('status', ...args)).stdout).toContain(`${MARK}-${index}`);
    await sandbox.clearFaults();
  }
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
  await askAround(place, sandbox, job.jobId, codes[0] ?? '');
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
