/** What each command says of failures, while the service quotes what it was shown: no secret. */
import fs from 'node:fs';
import { expect, it } from 'vitest';
import { orderOf } from '../../support/e2e-job.ts';
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
import { PATIENCE, until } from '../../support/e2e-until.ts';

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

it.concurrent('while calls fail with the session code', PATIENCE, async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  await sandbox.setUser({ username: sandbox.username, password: PASSWORD });
  fs.writeFileSync(sandbox.passwordFile, `${PASSWORD}\n`);
  const job = await sandbox.submit({ tasks: [{}] });
  fs.writeFileSync(job.tasks[0]?.files.stdout ?? '', 'hello\n');
  place.configure(sandbox, { watch: [orderOf(job)] });
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
