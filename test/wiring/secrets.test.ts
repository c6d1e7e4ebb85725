/** A secret that a name or a message quotes reaches no output. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { freePort } from '../../simulator/free-port.ts';
import { reportOf } from '../../src/cli/show/status-report.ts';
import { configSchema } from '../../src/config/schema.ts';
import { requestOf, taskOf } from '../support/e2e-job.ts';
import { Place } from '../support/e2e-place.ts';
import { until } from '../support/e2e-until.ts';
import { secretKeysOf } from '../support/schema-keys.ts';
import { makeCertificates } from '../support/wire-certificates.ts';
import { closedAtEnd, startHttpServer } from '../support/wire-server.ts';
import { runDaemon, seriesAt } from './whole-daemon.ts';

/** Without a piece in common with another one, which would hide it. */
const secretOf = (name: string) => createHash('sha256').update(name).digest('hex').slice(0, 16);
const CODE = secretOf('session');

/** Answers a sign-in with CODE; everything else fails, and quotes what `quoted` returns. */
async function startQuotingService(quoted: () => string, signsIn: () => boolean): Promise<string> {
  const server = await startHttpServer((request, response) => {
    request.resume();
    const isSignedIn = signsIn() && request.url?.includes('UserAndLimitationManagement') === true;
    response.writeHead(isSignedIn ? 200 : 500, { 'content-type': isSignedIn ? 'application/json' : 'text/plain' });
    response.end(isSignedIn ? JSON.stringify(CODE) : `refused: ${quoted()}`);
  });
  return `http://127.0.0.1:${closedAtEnd(server).port}`;
}

/** By key, what is written, and the secrets that the program reads there. */
type Planted = Readonly<Record<string, readonly [written: unknown, ...secrets: string[]]>>;

test('no secret of the schema, also of a program, reaches the log, a report, the metrics or the state', async (context) => {
  const place = Place.make(context);
  const at = (name: string) => path.join(place.directory, name);
  const file = (name: string, text = secretOf(name)): [string, string] => {
    fs.writeFileSync(at(name), text, { mode: 0o700 });
    return [name, secretOf(name)];
  };
  const program = (name: string): [string[], string] => [
    [at(file(name, `#!/bin/sh\necho ${secretOf(name)}\n`)[0])],
    secretOf(name),
  ];
  vi.stubEnv('CREDENTIALS_DIRECTORY', place.directory);
  onTestFinished(() => void vi.unstubAllEnvs());
  makeCertificates(place.directory);
  const lineOfKey = fs.readFileSync(at('client.key'), 'utf8').split('\n')[1] ?? '';
  const port = await freePort();
  const database = (name: string) => file(name, `postgresql://u:${secretOf(name)}@127.0.0.1:9/jobs`);
  const ofService: Planted = {
    'service.proxyUserFile': file('proxy', `p:${secretOf('proxy')}`),
    'service.tls.keyFile': ['client.key', lineOfKey.slice(20, 40)],
    'view.tokenFile': file('view', `${secretOf('view')}${'-'.repeat(40)}`),
  };
  const ofRules: Planted = {
    'notify.url': [
      `http://127.0.0.1:9/${secretOf('inUrl')}?key=${secretOf('inQuery')}`,
      secretOf('inUrl'),
      secretOf('inQuery'),
    ],
    'notify.secretFile': file('hmac'),
    'notify.command': [['true', secretOf('argument')], secretOf('argument')],
  };
  const signIns: Planted[] = [
    { 'auth.passwordFile': file('pass'), 'fleet.urlFile': database('inFile') },
    { 'auth.passwordCommand': program('word'), 'fleet.urlCredential': database('inCredential') },
    { 'auth.passwordCredential': file('cred'), ...ofService },
    { 'auth.tokenFile': file('token'), ...ofRules },
    { 'auth.tokenCommand': program('tokenOf') },
    { 'auth.tokenCredential': file('tokenIn') },
    { 'auth.sessionCodeFile': file('code') },
    { 'auth.sessionCodeCommand': program('codeOf') },
    { 'auth.sessionCodeCredential': file('codeIn') },
  ];
  const keys = signIns.flatMap((run) => Object.keys(run)).sort();
  expect(keys).toEqual(secretKeysOf(configSchema('/')));

  let secrets: string[] = [];
  let isFleet = false;
  const server = await startQuotingService(
    () => secrets.join(' '),
    () => !isFleet,
  );
  for (const [index, run] of signIns.entries()) {
    const section = (name: string) =>
      Object.fromEntries(
        Object.entries(run).flatMap(([key, [written]]) =>
          key.startsWith(`${name}.`) ? [[key.slice(name.length + 1), written]] : [],
        ),
      );
    const [source = ''] = Object.keys(run);
    const method = /token/.test(source) ? 'openid' : /password/.test(source) ? 'password' : 'session-code';
    isFleet = Object.keys(run).some((key) => key.startsWith('fleet.'));
    secrets = [
      ...Object.values(run).flatMap(([, ...texts]) => texts),
      ...(isFleet || method === 'session-code' ? [] : [CODE]),
    ];
    const { command, ...hook } = section('notify');
    place.writeConfig(
      JSON.stringify({
        service: {
          ...{ protocol: 'soap', fileTransferUrl: `${server}/files`, namespace: 'urn:n/', baseUrl: server },
          ...('service.proxyUserFile' in run && {
            proxy: server,
            proxyUserFile: run['service.proxyUserFile']?.[0],
            tls: { certFile: 'client.pem', keyFile: run['service.tls.keyFile']?.[0] },
          }),
        },
        auth: { method, ...(method !== 'session-code' && { username: 'u' }), ...section('auth') },
        ...(isFleet && { fleet: section('fleet') }),
        ...('view.tokenFile' in run && { view: { ...section('view'), listen: '127.0.0.1:0' } }),
        ...(command !== undefined && {
          notify: [
            { on: ['failed'], command },
            { on: ['failed'], ...hook },
          ],
        }),
        state: { directory: `state-${index}` },
        mirror: { directory: `mirror-${index}` },
        metrics: { listen: `127.0.0.1:${port}` },
        watch: [{ job: '735' }],
      }),
    );
    const { config, store, lines, end } = await runDaemon(place);
    await until(`${source} to be quoted`, () => lines.some((line) => line.includes('refused: ***')));
    const outputs: Record<string, string> = {
      log: lines.join(''),
      report: JSON.stringify(reportOf(config, store, undefined)),
      metrics: JSON.stringify([...(await seriesAt(port))]),
    };
    await end();
    if (source === 'auth.tokenCommand') {
      fs.writeFileSync(at('a-log'), `refused: ${secrets[0]}\n`);
      const { stdout } = await place.agent('report', '--output', '-', '--log', at('a-log'));
      expect(stdout).toContain('refused: ***');
      outputs['of agent report'] = stdout;
    }
    for (const name of fs.readdirSync(config.state.directory, { recursive: true, encoding: 'utf8' })) {
      const written = path.join(config.state.directory, name);
      if (fs.statSync(written).isFile()) outputs[name] = fs.readFileSync(written, 'latin1');
    }
    const found = Object.entries(outputs).flatMap(([where, text]) =>
      secrets.flatMap((secret) => (text.includes(secret) ? [`${secret} in ${where}`] : [])),
    );
    expect(found).toEqual([]);
  }
});

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
