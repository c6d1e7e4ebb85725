/** A secret that a name or a message quotes reaches no output, and the file of one is watched, after a reload too. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { FileWatch } from '../../src/daemon/watch-files.ts';
import { requestOf, taskOf } from '../support/e2e-job.ts';
import { Place } from '../support/e2e-place.ts';
import { until } from '../support/e2e-until.ts';
import { runDaemon } from './whole-daemon.ts';

test('no secret of the configuration reaches the log, a command, a notification or the state', async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  const secretOf = (name: string) => `${name}-Zq7${'x'.repeat(12)}`;
  const file = (name: string) => {
    const at = path.join(place.directory, name);
    fs.writeFileSync(at, `${secretOf(name)}\n`, { mode: 0o600 });
    return at;
  };
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
      { on: ['failed'], url: `http://127.0.0.1:9/${secrets.url}?key=${secrets.query}`, secretFile: file('hmac') },
    ],
  });
  const { lines } = await runDaemon(place);
  await until('the results', async () => (await place.status()).jobs[0]?.results.synced === 5);
  const verified = await place.agent('verify', job.jobId);
  const results = await place.agent('results', job.jobId);
  await sandbox.change(job.jobId, 'fail', { message: `refused: ${quoted}` });
  await until('the notification', async () => fs.existsSync(told) && fs.readFileSync(told, 'utf8').includes('failed'));
  const status = JSON.stringify(await place.status());
  const outputs = {
    log: lines.join(''),
    verify: verified.stdout + verified.stderr,
    notification: fs.readFileSync(told, 'utf8'),
    status,
    results: results.stderr,
  };
  const found = Object.entries(outputs).flatMap(([where, text]) =>
    Object.entries(secrets).flatMap(([name, secret]) => (text.includes(secret) ? [`${name} in ${where}`] : [])),
  );
  expect(found).toEqual([]);
  expect(outputs.verify).toContain('***');
});

test('a secret file of a new configuration is watched', async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  const job = await sandbox.submit({ tasks: [{}] });
  place.configure(sandbox, { watch: [requestOf(job)] });
  const watched = vi.spyOn(FileWatch.prototype, 'watch');
  onTestFinished(() => watched.mockRestore());
  const { lines } = await runDaemon(place);
  const other = path.join(place.directory, 'other-password');
  fs.copyFileSync(sandbox.passwordFile, other);
  place.configure({ ...sandboxOf(sandbox), passwordFile: other }, { watch: [requestOf(job)] });
  await until('the reload', async () => lines.filter((line) => line.includes('agent ready')).length === 2);
  expect([...(watched.mock.lastCall?.[0].keys() ?? [])]).toEqual(expect.arrayContaining([other, place.configFile]));
});

const sandboxOf = ({ baseUrl, username }: { baseUrl: string; username: string }) => ({ baseUrl, username });
