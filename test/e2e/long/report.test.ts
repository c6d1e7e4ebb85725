/** `agent version` and `agent report`: what is in them, and that no secret is. */
import { generateKeyPairSync } from 'node:crypto';
import fs from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { expect, it } from 'vitest';
import { freePort } from '../../../simulator/free-port.ts';
import { Place } from '../../support/e2e-place.ts';
import { Program } from '../../support/e2e-program.ts';
import { expectNoSecret, PASSWORD, quotationsOf } from '../../support/e2e-secrets.ts';
import { until } from '../../support/e2e-until.ts';

const SECTIONS = ['report', 'version', 'configuration', 'status', 'check', 'metrics', 'log'];

/** The sections of a report, by their names. */
function sectionsOf(text: string): Record<string, string> {
  const parts = text.split(/^==== (.*) ====$/m).slice(1);
  return Object.fromEntries(
    parts.flatMap((name, at) => (at % 2 === 0 ? [[name, parts[at + 1]?.trim() ?? '']] : [])),
  ) as Record<string, string>;
}

/** Runs `agent report` with other arguments; the text of the file that it prints. */
async function reportOf(place: Place, args: readonly string[], env: Record<string, string> = {}): Promise<string> {
  const { code, stdout, stderr } = await place.startAt(place.configFile, ['report', ...args], { env }).ended;
  expect({ code, stderr }).toMatchObject({ code: 0 });
  const file = stdout.trimEnd();
  expect(path.dirname(file)).toBe(place.directory);
  expect(fs.statSync(file).mode & 0o777).toBe(0o600);
  const text = fs.readFileSync(file, 'utf8');
  fs.rmSync(file);
  return `${text}\n${stderr}`;
}

it.concurrent.for([
  ['was not built', 'MODULE_NOT_FOUND', "Cannot find module 'better-sqlite3/build/Release/better_sqlite3.node'"],
  ['is of another Node.js', 'ERR_DLOPEN_FAILED', 'compiled against a different Node.js version'],
] as const)('a native module that %s', async ([, code, message], context) => {
  const place = Place.make(context);
  place.configure({ baseUrl: 'http://127.0.0.1:1', username: 'alice', passwordFile: 'password' });
  const preload = path.join(place.directory, 'preload.cjs');
  fs.writeFileSync(
    preload,
    `process.dlopen = () => { throw Object.assign(new Error(${JSON.stringify(message)}), { code: '${code}' }); };`,
  );
  const node = [process.execPath, '--require', preload];
  const ended = await place.startAt(place.configFile, ['run'], { node }).ended;
  expect(ended.code).toBe(8);
  expect(ended.stderr).toContain(`cannot load the native module better-sqlite3: ${message}`);
  expect(ended.stderr).toContain('without one, use the archive that has its own Node.js (docs/install.md)');
  const program = new Program(['version', '--json'], { cwd: place.directory, node });
  expect(JSON.parse((await program.ended).stdout)).toMatchObject({
    sqlite: null,
    modules: { 'better-sqlite3': { error: expect.stringContaining(message) } },
  });
});

it.concurrent('report: everything that helps, of an agent that runs', async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  const job = await sandbox.submit({ tasks: [{}] });
  fs.writeFileSync(job.tasks[0]?.files.stdout ?? '', 'hello\n');
  // The first name of the listing is quoted by `check`.
  fs.writeFileSync(path.join(path.dirname(job.tasks[0]?.files.stdout ?? ''), `0-${sandbox.secrets.password}`), 'x\n');
  const port = await freePort();
  const metrics = { listen: `127.0.0.1:${port}` };
  const view = { listen: `127.0.0.1:${await freePort()}` };
  place.configure(sandbox, { watch: [{ job: job.jobId, tasks: [job.tasks[0]?.taskId] }], metrics, view });
  const agent = await place.run();
  await place.mirrored(job, 'stdout');
  const tokenFile = path.join(place.state, 'view-token');
  await until('the token of the view', () => fs.existsSync(tokenFile));
  const token = fs.readFileSync(tokenFile, 'utf8').trim();
  const code = await sandbox.sessionCode();
  const log = path.join(place.directory, 'agent.log');
  const planted = [sandbox.secrets.password, token].flatMap((secret) => [secret, ...quotationsOf(secret)]);
  fs.writeFileSync(log, `${agent.stderr}${planted.join('\n')}\nSession ${code}\nthe last line\n`);
  const text = await reportOf(place, ['--log', log]);
  const found = sectionsOf(text);
  expect(Object.keys(found)).toEqual(SECTIONS);
  expect(found['version']).toContain('"sqlite": "3.');
  expect(found['configuration']).toContain(`"fileTransferUrl": "${sandbox.baseUrl}/FileTransferWs"`);
  expect(found['status']).toContain(`"jobId": "${job.jobId}"`);
  expect(found['check']).toMatch(/✓ sign-in/);
  expect(found['check']).toMatch(/✓ call/);
  expect(found['metrics']).toMatch(/^jobtail_build_info\{/m);
  expect(found['log']).toContain('"msg":"signed in"');
  expect(found['log']).toContain('the last line');
  expectNoSecret(new Map([['report', Buffer.from(text)]]), [sandbox.secrets.password, token, code]);
});

it.concurrent('report: no secret from any place', async (context) => {
  const place = Place.make(context);
  const { privateKey } = generateKeyPairSync('ed25519');
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const keyLine = key.split('\n')[1] ?? '';
  const secrets = {
    password: PASSWORD,
    argument: 'Zq93b1f7c2d4e8',
    database: 'Xk5e0a8b61c3f7',
    proxy: 'kw-Proxy-7d92c04e1f',
    comment: 'kw-Comment-1a2b3c4d5e',
    assigned: 'kw-Assigned-6f7e8d9c0b',
    bearer: 'kw-Bearer-0c1d2e3f4a',
    query: 'kw-Query-8b7a6c5d4e',
  };
  const fileOf = (name: string, text: string) => {
    const file = path.join(place.directory, name);
    fs.writeFileSync(file, text, { mode: 0o600 });
    return file;
  };
  const passwordFile = fileOf('password', PASSWORD);
  const known = [PASSWORD, secrets.argument, secrets.database, keyLine];
  // What listens there may be any program.
  const server = createServer((_, response) => void response.end(`# ${known.join(' ')} Bearer ${secrets.bearer}\n`));
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  context.onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const config = {
    service: {
      protocol: 'soap',
      fileTransferUrl: `http://127.0.0.1:${port}/FileTransferWs?key=${secrets.query}`,
      namespace: `http://sandbox.example.org/`,
      baseUrl: `http://127.0.0.1:${port}`,
      tls: { keyFile: fileOf('key.pem', key), certFile: fileOf('cert.pem', 'no certificate') },
    },
    auth: {
      method: 'password',
      username: PASSWORD,
      passwordCommand: ['sh', '-c', 'cat "$0"', passwordFile, secrets.argument],
    },
    mirror: { directory: place.mirror },
    state: { directory: place.state },
    metrics: { listen: `127.0.0.1:${port}` },
    fleet: { urlFile: fileOf('database', `postgresql://agent:${secrets.database}@127.0.0.1:1/jobtail`) },
  };
  const log = fileOf(
    'agent.log',
    [
      ...known.flatMap((secret) => [secret, ...quotationsOf(secret)]),
      `proxy http://someone:${secrets.proxy}@proxy.example.org:3128`,
      `{"token": "${secrets.assigned}", "password":"${secrets.assigned}"} secret=${secrets.assigned}&x=1`,
      `authorization: Bearer ${secrets.bearer}`,
      `GET https://mw.example.org/a?session=${secrets.query}`,
      key,
    ].join('\n'),
  );
  const env = { HTTPS_PROXY: `http://someone:${secrets.proxy}@127.0.0.1:1`, NO_PROXY: secrets.proxy };
  place.writeConfig(`# ${secrets.comment}\n${JSON.stringify(config)}`);
  const text = await reportOf(place, ['--log', log], env);
  const found = sectionsOf(text);
  expect(Object.keys(found)).toEqual(SECTIONS);
  expect(found['metrics']).toMatch(/^# \*\*\* .*\*\*\*$/);
  expect(found['log']).toContain('proxy http://***@proxy.example.org:3128');
  expect(found['configuration']).toContain('(4 arguments, not shown)');
  expectNoSecret(new Map([['report', Buffer.from(text)]]), [...Object.values(secrets), keyLine]);

  fs.rmSync(passwordFile);
  const without = sectionsOf(await reportOf(place, ['--log', log], env));
  expect(without['report']).toContain(
    'a secret cannot be read, so this report was not searched for it: the program sh',
  );
});
