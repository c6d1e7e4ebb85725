/** `agent report`: what is in it, and that no secret is, wherever it stands. */
import { generateKeyPairSync } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { execute } from '../../src/cli/execute.ts';
import { PROGRAM } from '../support/e2e-program.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';
import { closedAtEnd, startHttpServer } from '../support/wire-server.ts';
import { captured, ownState } from './own-state.ts';

it('a report has all that helps, and no secret from any place', async () => {
  const secrets = {
    password: 'Pw0f1e2d3c4b5a',
    argument: 'Zq93b1f7c2d4e8',
    database: 'Xk5e0a8b61c3f7',
    proxy: 'kw-Proxy-7d92c04e1f',
    assigned: 'kw-Assigned-6f7e8d9c0b',
    bearer: 'kw-Bearer-0c1d2e3f4a',
    query: 'kw-Query-8b7a6c5d4e',
    hook: 'kw-Hook-5a6b7c8d9e',
    key:
      generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString().split('\n')[1] ??
      '',
  };
  const { password, argument, database, proxy, assigned, bearer, query, hook, key } = secrets;
  const home = temporaryDirectory();
  const fileOf = (name: string, text: string) => {
    fs.writeFileSync(path.join(home, name), text, { mode: 0o600 });
    return path.join(home, name);
  };
  const passwordFile = fileOf('secret', password);
  const known = [password, argument, database, key].join(' ');
  // What listens there may be any program.
  const server = await startHttpServer((_, response) => void response.end(`# ${known} Bearer ${bearer}\n`));
  const url = `http://127.0.0.1:${closedAtEnd(server).port}`;
  const { directory, file } = await ownState({
    service: {
      ...{ protocol: 'soap', fileTransferUrl: `${url}/Ws?key=${query}`, namespace: 'urn:n/', baseUrl: url },
      tls: {
        keyFile: fileOf('key.pem', `-----BEGIN\n${key}\n-----END`),
        certFile: fileOf('cert.pem', 'no certificate'),
      },
    },
    auth: { method: 'password', username: 'alice', passwordCommand: ['sh', '-c', 'cat "$0"', passwordFile, argument] },
    metrics: { listen: new URL(url).host },
    notify: [{ on: ['failed'], url: `https://hooks.example.org/${hook}` }],
    fleet: { urlFile: fileOf('database', `postgresql://agent:${database}@127.0.0.1:1/jobtail`) },
  });
  const log = [
    known,
    `proxy http://someone:${proxy}@proxy.example.org:3128`,
    `{"token": "${assigned}", "password":"${assigned}"} secret=${assigned}&x=1`,
    `authorization: Bearer ${bearer}`,
    `GET https://mw.example.org/a?session=${query}`,
    'the last line',
  ];
  vi.stubEnv('HTTPS_PROXY', `http://someone:${proxy}@127.0.0.1:1`);
  vi.stubEnv('NO_PROXY', proxy);
  const { argv } = process;
  process.argv = [argv[0] ?? '', PROGRAM];
  onTestFinished(() => {
    vi.unstubAllEnvs();
    process.argv = argv;
  });
  const printed = captured();
  const logFile = fileOf('agent.log', `${'older\n'.repeat(600)}${log.join('\n')}\n`);
  /** The sections of a report, by their names. */
  const sectionsOf = async (name: string) => {
    const output = path.join(directory, name);
    await execute(['report', '--config', file, '--log', logFile, '--output', output]);
    expect([printed().split('\n').at(-2), fs.statSync(output).mode & 0o777]).toEqual([output, 0o600]);
    const text = fs.readFileSync(output, 'utf8');
    for (const [kind, secret] of Object.entries(secrets)) expect(text, kind).not.toContain(secret);
    const parts = text.split(/^==== (.*) ====$/m).slice(1);
    return Object.fromEntries(parts.flatMap((part, at) => (at % 2 === 0 ? [[part, parts[at + 1]?.trim()]] : [])));
  };
  const found = await sectionsOf('report');
  expect(Object.keys(found)).toEqual(['report', 'version', 'configuration', 'status', 'check', 'metrics', 'log']);
  expect(found).toMatchObject({
    report: expect.stringMatching(/\nenvironment variables that are set: .*HTTPS_PROXY.*NO_PROXY/),
    version: expect.stringContaining('"sqlite": "3.'),
    configuration: expect.stringMatching(
      /"sh",\s+"\(4 arguments, not shown\)"[\s\S]*"https:\/\/hooks.example.org\/\*\*\*"/,
    ),
    status: expect.stringMatching(/^agent: the database of the fleet [\s\S]*\nexit code: 8$/),
    check: expect.stringMatching(/config\.yaml, jobs in it: none\n[\s\S]*exit code: \d$/),
    metrics: expect.stringMatching(/^# \*\*\* .*\*\*\*$/),
    log: expect.stringMatching(
      /^older\n[\s\S]*\nproxy http:\/\/\*\*\*@proxy.example.org:3128\n[\s\S]*\nthe last line$/,
    ),
  });
  expect(found['log']?.split('\n')).toHaveLength(500);
  fs.rmSync(passwordFile);
  const reason = 'a secret cannot be read, so this report was not searched for it: the program sh';
  fs.writeFileSync(logFile, '');
  delete (secrets as { password?: string }).password;
  expect(await sectionsOf('another')).toMatchObject({
    report: expect.stringContaining(reason),
    log: expect.stringMatching(/^not available: .*it has no line\n.*agent report --log FILE$/),
  });
});
