/** What each command says of failures, while the service quotes what it was shown: no secret. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { requestOf } from '../../support/e2e-job.ts';
import { Place } from '../../support/e2e-place.ts';
import type { SandboxService } from '../../support/e2e-sandbox.ts';
import {
  expectNoSecret,
  failingSignIns,
  MARK,
  PASSWORD,
  quotationsOf,
  TOKEN,
  traces,
} from '../../support/e2e-secrets.ts';
import { until } from '../../support/e2e-until.ts';

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

it.concurrent('no secret is shown while calls fail with the session code', async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  await sandbox.setUser({ username: sandbox.username, password: PASSWORD });
  fs.writeFileSync(sandbox.passwordFile, `${PASSWORD}\n`);
  const job = await sandbox.submit({ tasks: [{}] });
  fs.writeFileSync(job.tasks[0]?.files.stdout ?? '', 'hello\n');
  place.configure(sandbox, { watch: [requestOf(job)] });
  const agent = await place.run();
  await place.mirrored(job, 'stdout');
  const code = await sandbox.sessionCode(PASSWORD);
  await askAround(place, sandbox, job.jobId, code);
  const before = traces(place, agent);
  await agent.kill();
  const { controlToken, password } = sandbox.secrets;
  expectNoSecret(new Map([...before, ...traces(place, agent)]), [PASSWORD, password, controlToken, code]);
});

for (const secret of ['password', 'token'] as const) {
  it.concurrent(`when no sign-in with a ${secret} succeeds`, async (context) => {
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

it.concurrent('no secret is shown with a transfer method that quotes them', async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  const job = await sandbox.submit({ tasks: [{}] });
  fs.writeFileSync(path.join(path.dirname(job.tasks[0]?.files.stdout ?? ''), 'result.txt'), 'a result\n');
  const watch = [{ job: job.jobId, tasks: job.tasks.map(({ taskId }) => taskId) }];
  place.configure(sandbox, { watch, results: { transfer: 'direct' } });
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
