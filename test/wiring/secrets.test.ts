/** A secret that a name or a message of a job quotes reaches no output; those of the schema: keys.test.ts. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { requestOf, taskOf } from '../support/e2e-job.ts';
import { Place } from '../support/e2e-place.ts';
import { until } from '../support/e2e-until.ts';
import { runDaemon } from './whole-daemon.ts';

/** Without a piece in common with another one, which would hide it. */
const secretOf = (name: string) => createHash('sha256').update(name).digest('hex').slice(0, 16);

test('no secret that names and messages of a job have reaches the log, a command or a notification', async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  const secretFile = path.join(place.directory, 'hmac');
  fs.writeFileSync(secretFile, secretOf('hmac'), { mode: 0o600 });
  const secrets = {
    password: sandbox.secrets.password,
    hmac: secretOf('hmac'),
    url: secretOf('inUrl'),
    query: secretOf('inQuery'),
    argument: secretOf('argument'),
  };
  const job = await sandbox.submit({ tasks: [{}] });
  const { files } = taskOf(job);
  const quoted = Object.values(secrets).join(' ');
  for (const secret of Object.values(secrets))
    fs.writeFileSync(path.join(path.dirname(files.stdout), `${secret}.dat`), 'a result');
  const told = path.join(place.directory, 'told');
  place.configure(sandbox, {
    service: { jobsUrl: sandbox.jobsUrl },
    watch: [requestOf(job)],
    notify: [
      { on: ['failed'], command: ['/bin/sh', '-c', `cat >> ${told}; : "$1"`, 'sh', secrets.argument] },
      { on: ['failed'], url: `http://127.0.0.1:9/${secrets.url}?key=${secrets.query}`, secretFile },
    ],
  });
  const { lines } = await runDaemon(place);
  await until('the results', async () => (await place.status()).jobs[0]?.results.synced === 5);
  const verified = await place.agent('verify', job.jobId);
  await sandbox.change(job.jobId, 'fail', { message: `refused: ${quoted}` });
  // Each order lets the agent look at once.
  await place.agent('watch', job.jobId, '--no-wait');
  await until('the notification', async () => fs.existsSync(told) && fs.readFileSync(told, 'utf8').includes('failed'));
  const status = JSON.stringify(await place.status());
  const sessionCode = await sandbox.sessionCode();
  const outputs: Record<string, string> = {
    log: lines.join(''),
    verified: verified.stdout + verified.stderr,
    notification: fs.readFileSync(told, 'utf8'),
    status,
  };
  // While the service quotes them at every call.
  await sandbox.fault({ kind: 'fault', text: `refused: ${quoted} ${sessionCode}` });
  for (const [command = '', ...args] of [
    ['check', '--job', job.jobId],
    ['sync', job.jobId],
    ['verify', '--json', job.jobId],
  ]) {
    const { code, stdout, stderr } = await place.agent(command, ...args);
    expect([command, code]).not.toEqual([command, 0]);
    expect(`${stdout}${stderr}`).toContain('refused: ***');
    outputs[command] = stdout + stderr;
  }
  const found = Object.entries(outputs).flatMap(([where, text]) =>
    Object.entries({ ...secrets, sessionCode }).flatMap(([name, secret]) =>
      text.includes(secret) ? [`${name} in ${where}`] : [],
    ),
  );
  expect(found).toEqual([]);
  expect(verified.stdout).toContain('***');
});
