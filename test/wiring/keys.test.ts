/**
 * Each key of the configuration arrives: the real daemon is composed from configurations in which every key has an
 * unusual value, and what its parts received or sent is compared. A key of the schema without a row here fails. parts.txt
 * has all that the parts of these daemons receive. Of secrets, which the service quotes, nothing is in any output.
 */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import * as v from 'valibot';
import { expect, onTestFinished, test, vi } from 'vitest';
import { freePort } from '../../simulator/free-port.ts';
import { Agent } from '../../src/agent/loop/agent.ts';
import { reportOf } from '../../src/cli/show/status-report.ts';
import { configSchema } from '../../src/config/schema.ts';
import { ApiThread } from '../../src/daemon/api-thread.ts';
import { Reload } from '../../src/daemon/reload.ts';
import { ViewThread } from '../../src/daemon/view-thread.ts';
import { FileWatch } from '../../src/daemon/watch-files.ts';
import { FleetMember } from '../../src/fleet/member.ts';
import type { ServiceCallsOptions } from '../../src/remote/session-calls.ts';
import { Place } from '../support/e2e-place.ts';
import { until } from '../support/e2e-until.ts';
import { keysOfSchema, secretKeysOf } from '../support/schema-keys.ts';
import { makeCertificates } from '../support/wire-certificates.ts';
import { bodyOf, closedAtEnd, startHttpServer } from '../support/wire-server.ts';
import { runDaemon, seriesAt } from './whole-daemon.ts';

/** The arguments of all calls of the functions and classes of a module, by name; they do their work as usual. */
const parts = vi.hoisted(() => {
  const calls = new Map<string, unknown[][]>();
  const recorded = (name: string, args: unknown[]) => calls.set(name, [...(calls.get(name) ?? []), args]);
  const recording = async <Module extends object>(original: () => Promise<Module>) => {
    const exported = Object.entries(await original()).map(([name, value]) => {
      if (typeof value !== 'function') return [name, value];
      const apply = (target: () => unknown, self: unknown, args: unknown[]) => {
        recorded(name, args);
        return Reflect.apply(target, self, args);
      };
      const construct = (target: () => unknown, args: unknown[], made: () => unknown) => {
        recorded(name, args);
        return Reflect.construct(target, args, made) as object;
      };
      return [name, new Proxy(value, { apply, construct })];
    });
    return Object.fromEntries(exported) as Module;
  };
  return { calls, recorded, recording };
});
vi.mock(import('../../src/agent/calls.ts'), parts.recording);
vi.mock(import('../../src/agent/live/mirror/mirror.ts'), parts.recording);
vi.mock(import('../../src/agent/loop/agent.ts'), parts.recording);
vi.mock(import('../../src/agent/results/download/by-direct.ts'), parts.recording);
vi.mock(import('../../src/agent/results/results.ts'), parts.recording);
vi.mock(import('../../src/agent/retention.ts'), parts.recording);
vi.mock(import('../../src/agent/server-share.ts'), parts.recording);
vi.mock(import('../../src/direct/share.ts'), parts.recording);
vi.mock(import('../../src/direct/ssh-transfer.ts'), parts.recording);
vi.mock(import('../../src/fleet/member.ts'), parts.recording);
vi.mock(import('../../src/notify/rules.ts'), parts.recording);
vi.mock(import('../../src/remote/http/http-client.ts'), parts.recording);
vi.mock(import('../../src/remote/rest/client.ts'), parts.recording);
vi.mock(import('../../src/remote/signin/sign-in.ts'), parts.recording);
vi.mock(import('../../src/remote/soap/client.ts'), parts.recording);
vi.mock(import('../../src/system/files.ts'), parts.recording);

interface Seen extends Awaited<ReturnType<typeof runDaemon>> {
  /** All requests of the agent: method, address, headers and body. */
  readonly requests: readonly string[];
}

/** What is written, and where it arrives, else at a part that is printed; as what: as the schema reads it, if omitted. */
type Row = readonly [written: unknown, where?: ((seen: Seen) => unknown) | undefined, expected?: unknown];

/** The parts whose arguments are printed. */
const PARTS = [
  ...['Calls', 'ServerShare', 'HttpClient', 'SignIn', 'SoapRemote', 'SoapJobService', 'RestRemote', 'RestJobService'],
  ...['Mirrors', 'DiskReserve', 'Results', 'DirectResults', 'shareTransfer', 'sshTransfer', 'Agent', 'Retention'],
  ...['Rule', 'FleetMember', 'attach', 'start', 'onTurn', 'use', 'ask', 'drain'],
];

/** One line for each value; of what is made by a class, the class alone. */
function linesOf(value: unknown, name: string): string[] {
  if (typeof value === 'function') return [`${name} is a function`];
  if (typeof value !== 'object' || value === null) return [`${name} = ${JSON.stringify(value)}`];
  if (Buffer.isBuffer(value)) return [`${name} = ${JSON.stringify(String(value))}`];
  if (!Array.isArray(value) && Object.getPrototypeOf(value) !== Object.prototype)
    return [`${name} is a ${value.constructor.name}`];
  const members = Object.entries(value);
  if (members.length > 3 && members.every(([, each]) => typeof each === 'function'))
    return [`${name} has ${members.map(([key]) => key).join(' ')}`];
  return members.length === 0
    ? [`${name} is empty`]
    : members.flatMap(([key, each]) => linesOf(each, `${name}.${key}`));
}

/** A line without what is another each time. */
function plain(line: string, { directory }: Place): string {
  const certificates = ['ca.pem', 'client.pem', 'client.key'].map((name) => path.join(directory, name));
  return certificates
    .reduce((text, file) => text.replace(JSON.stringify(fs.readFileSync(file, 'utf8')), `what is in ${file}`), line)
    .replaceAll(directory, 'DIR')
    .replaceAll(os.homedir(), 'HOME')
    .replaceAll(JSON.stringify(os.hostname()), '"HOST"')
    .replaceAll(/127\.0\.0\.1:\d{2,}/g, '127.0.0.1:PORT')
    .replaceAll(/(?<=[pP]id = )\d+/g, 'PID')
    .replaceAll(/[\da-f]{8}-[-\da-f]{27}/g, 'ID');
}

const isSent = (text: string) => (seen: Seen) => seen.requests.some((request) => request.includes(text));
const sent = (written: string, text = written): Row => [written, isSent(text), true];
const isFault = (words: string) =>
  (parts.calls.get('SoapRemote')?.[0]?.[0] as ServiceCallsOptions | undefined)?.isSessionFault(words);
const made = (part: string) => (parts.calls.has(part) ? part : 'another');

/** Without a piece in common with another one, which would hide it. */
const secretOf = (key: string) => createHash('sha256').update(key).digest('hex').slice(0, 16);

/** Receives all requests, also as a proxy: returns CODE in an unusual member if that is a secret, else quotes all secrets. */
async function startService(requests: string[], secrets: () => readonly string[]): Promise<number> {
  const server = await startHttpServer(async (request, response) => {
    const body = await bodyOf(request);
    const proxyUser = Buffer.from(request.headers['proxy-authorization']?.split(' ')[1] ?? '', 'base64');
    requests.push(`${request.method} ${request.url} ${JSON.stringify(request.headers)} ${body} ${proxyUser}`);
    const isSignIn = request.url?.includes('SignIn') === true && secrets().includes(CODE);
    response.writeHead(isSignIn ? 200 : 500, { 'content-type': isSignIn ? 'application/json' : 'text/plain' });
    response.end(isSignIn ? JSON.stringify({ unusual: { code: CODE } }) : `refused: ${secrets().join(' ')}`);
  });
  return closedAtEnd(server).port;
}

/** Files that are not watched: they are read each time when they are used. */
const READ_AT_USE = new Set(['results.ssh.knownHostsFile', 'fleet.urlFile', 'view.tokenFile']);
/** Requests that a daemon makes after its start. */
const ARRIVAL_MS = 30_000;
const CODE = secretOf('session');
const PINNED = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIunusual';
const databaseOf = (key: string) => `postgresql://unusual:${secretOf(key)}@127.0.0.1:9/jobs`;

/** The rows of each run of the daemon, by key: what no run sets has its default there. */
async function runsOf(place: Place, port: number): Promise<Record<string, Row>[]> {
  const at = (name: string) => path.join(place.directory, name);
  const file = (name: string, text: string) => {
    fs.writeFileSync(at(name), text, { mode: 0o700 });
    return name;
  };
  /** The row of a key with a secret that is sent. */
  const secret = (key: string, ...words: string[]): Record<string, Row> => {
    const script = `#!/bin/sh\n[ "$1" = "$UNUSUAL_VARIABLE" ] && echo ${secretOf(key)}\n`;
    const written = key.endsWith('Command') ? [at(file(key, script)), ...words] : file(key, secretOf(key));
    return { [key]: [written, isSent(secretOf(key)), true] };
  };
  vi.stubEnv('CREDENTIALS_DIRECTORY', place.directory);
  for (const name of ['RUNTIME_DIRECTORY', 'XDG_RUNTIME_DIR']) vi.stubEnv(name, undefined);
  vi.stubEnv('UNUSUAL_VARIABLE', 'unusual');
  makeCertificates(place.directory);
  const ofClient = (name: string): Row => [name, undefined, fs.readFileSync(at(name))];
  const server = `http://127.0.0.1:${port}`;
  const metricsPort = await freePort();

  const soap: Record<string, Row> = {
    'service.protocol': ['soap', () => made('SoapRemote'), 'SoapRemote'],
    'service.fileTransferUrl': sent(`${server}/files-of-it`, 'POST /files-of-it'),
    'service.namespace': sent('urn:unusual:names/'),
    'watch.job': ['735'],
  };
  const signsIn = (method: string): Record<string, Row> => ({
    ...soap,
    'service.baseUrl': sent(`${server}/gateway`, 'POST /gateway/'),
    'auth.method': [method],
    'auth.username': sent('unusual-user'),
    'auth.path': sent('below/SignIn', '/below/SignIn'),
    'auth.sessionCodeField': ['unusual.code', isSent(CODE), true],
  });
  /** Without a lease of a job, no call is made but the sign-in. */
  const inFleet = (method: string): Record<string, Row> => {
    const { 'watch.job': _, ...others } = signsIn(method);
    return {
      ...others,
      'service.fileTransferUrl': [`${server}/files-of-it`],
      'service.namespace': ['urn:unusual:names/'],
      'auth.sessionCodeField': ['unusual.code'],
    };
  };
  const withCode: Record<string, Row> = { ...soap, 'auth.method': ['session-code'] };

  return [
    {
      ...signsIn('password'),
      ...secret('auth.passwordFile'),
      'auth.operation': sent('UnusualOperation'),
      'auth.sessionFaultPattern': ['gone 4711', () => isFault('it is gone 4711'), true],
      'service.jobsUrl': sent(`${server}/jobs-of-it`, 'POST /jobs-of-it'),
      'service.soapVersion': sent('1.1', 'text/xml'),
      'service.concurrency': [7],
      'service.requestsPerMinute': [54_321],
      'service.timeoutSeconds': [17.5],
      'service.tls.caFile': ofClient('ca.pem'),
      'service.tls.certFile': ofClient('client.pem'),
      'service.tls.keyFile': ofClient('client.key'),
      'service.compression': ['off', undefined, undefined],
      'mirror.directory': ['copies'],
      'mirror.keepGenerations': [13],
      'mirror.minFreeBytes': ['3 KiB'],
      'state.directory': ['records', ({ store }) => store.directory],
      'poll.minIntervalSeconds': [0.3],
      'poll.maxIntervalSeconds': [0.7],
      'poll.overlapBytes': [612],
      'results.intervalSeconds': [37],
      'results.include': [['*.unusual']],
      'results.exclude': [['*.other']],
      'results.maxFileBytes': ['5 GiB'],
      'results.transfer': ['direct'],
      'results.directAboveBytes': ['3 MiB'],
      'results.bandwidthLimit': ['7 MiB'],
      'results.shareRoots': [{ '/there': '/srv/unusual' }],
      'results.ssh.hostKeys': ['strict'],
      'results.ssh.knownHostsFile': ['hosts'],
      'results.ssh.pinnedKeys': [[PINNED]],
      'watch.tasks': [['9100']],
      'watch.files': [['log']],
      'watch.results': [false],
      'watch.settleAfterMinutes': [11],
      'watchMine.include': [['mine*']],
      'watchMine.exclude': [['others*']],
      'watchMine.maxAgeDays': [3],
      'watchMine.maxJobs': [23],
      'errors.patterns': [['unusual end']],
      'notify.on': [['match', 'failed']],
      'notify.jobs': [['735']],
      'notify.files': [['log']],
      'notify.match': ['unusual line'],
      'notify.url': [`http://127.0.0.1:9/${secretOf('notify.url')}?key=${secretOf('its query')}`],
      'notify.secretFile': [file('hook', secretOf('notify.secretFile'))],
      'notify.proxy': ['http://127.0.0.1:9'],
      'notify.caFile': ['ca.pem'],
      stallAfterMinutes: [19],
      'retention.settledDays': [29],
      'retention.deleteFiles': [true],
      'logging.level': ['trace', ({ log }) => log.level],
      'metrics.listen': [
        `127.0.0.1:${metricsPort}`,
        async () => (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).ok,
        true,
      ],
      'view.listen': ['127.0.0.1:9'],
      'view.tokenFile': [file('view-token', `${secretOf('view.tokenFile')}${'-'.repeat(40)}`)],
      'view.publicUrl': ['https://view.example.org/unusual/'],
      'api.directory': ['sockets'],
      'api.controlGroup': ['unusual-group'],
    },
    {
      'service.protocol': ['rest', () => made('RestRemote'), 'RestRemote'],
      'service.path': sent('unusual-path', '/gateway/unusual-path/'),
      'service.baseUrl': sent(`${server}/gateway`, ' /gateway/unusual-path/'),
      'auth.username': ['unusual-user'],
      ...secret('auth.passwordCommand', 'unusual'),
      'auth.commandEnvironment': [['UNUSUAL_VARIABLE'], isSent(secretOf('auth.passwordCommand')), true],
      'auth.commandTimeoutSeconds': [47],
      'results.enabled': [false],
      'watch.job': ['736'],
      'notify.on': [['stalled']],
      'notify.command': [['page', secretOf('notify.command')]],
      'notify.commandEnvironment': [['GNUPGHOME']],
    },
    {
      ...signsIn('password'),
      'service.baseUrl': sent('http://middleware.example.org', 'POST http://middleware.example.org/'),
      'service.fileTransferUrl': ['http://middleware.example.org/files'],
      'service.namespace': ['urn:other'],
      'service.proxy': [server],
      'service.proxyUserFile': [
        file('proxy-user', `proxy:${secretOf('service.proxyUserFile')}`),
        isSent(`proxy:${secretOf('service.proxyUserFile')}`),
        true,
      ],
      'auth.username': ['unusual-user'],
      'auth.path': ['/below/SignIn'],
      'auth.sessionCodeField': ['unusual.code'],
      ...secret('auth.passwordCredential'),
    },
    {
      ...signsIn('password'),
      ...secret('auth.passwordCredential'),
      'notify.on': [['agent-degraded']],
      'notify.mail': ['unusual@example.org'],
    },
    {
      ...inFleet('cloud-platform'),
      'auth.projectId': sent('7731'),
      ...secret('auth.tokenFile'),
      'fleet.url': ['postgresql://unusual@127.0.0.1:9/jobs'],
      'fleet.name': ['unusual-agent'],
      'fleet.maxJobs': [31],
      'fleet.heartbeatSeconds': [43, undefined, 43_000],
      'fleet.schema': ['unusual_schema'],
      'fleet.drainOnStop': [true],
      'fleet.separateMirrors': [true],
      'view.publicUrl': ['https://view.example.org/of-fleet/'],
    },
    {
      ...inFleet('openid'),
      ...secret('auth.tokenCommand'),
      'fleet.urlFile': [file('database', databaseOf('fleet.urlFile')), undefined, databaseOf('fleet.urlFile')],
    },
    {
      ...inFleet('external-token'),
      ...secret('auth.tokenCredential'),
      'fleet.urlCredential': [
        file('database-credential', databaseOf('fleet.urlCredential')),
        undefined,
        databaseOf('fleet.urlCredential'),
      ],
    },
    ...['File', 'Command', 'Credential'].map((source) => ({ ...withCode, ...secret(`auth.sessionCode${source}`) })),
  ];
}

/** The configuration with these values; `watch` and `notify` have one entry. */
function configOf(rows: Record<string, Row>): string {
  const config: Record<string, unknown> = {};
  for (const [key, [written]] of Object.entries(rows)) {
    const steps = key.split('.').flatMap((step) => (step === 'watch' || step === 'notify' ? [step, '0'] : [step]));
    const last = steps.pop() ?? '';
    let section = config;
    for (const [index, step] of steps.entries()) {
      section[step] ??= steps[index + 1] === '0' ? [] : {};
      section = section[step] as Record<string, unknown>;
    }
    section[last] = written;
  }
  return JSON.stringify(config);
}

/** The texts of all files below a directory, by name. */
function textsIn(directory: string): [string, string][] {
  const names = fs.readdirSync(directory, { recursive: true, encoding: 'utf8' });
  const files = names.map((name) => path.join(directory, name)).filter((file) => fs.statSync(file).isFile());
  return files.map((file) => [file, fs.readFileSync(file, 'latin1')]);
}

test('each key of the schema arrives at the part of the daemon that needs it, and no secret in an output', async (context) => {
  const place = Place.make(context);
  const requests: string[] = [];
  let secrets: readonly string[] = [];
  const runs = await runsOf(place, await startService(requests, () => secrets));
  const secretKeys = new Set(secretKeysOf(configSchema('/')));
  const [, lineOfKey = ''] = fs.readFileSync(path.join(place.directory, 'client.key'), 'utf8').split('\n');
  const ofKey: Record<string, string[]> = {
    'service.tls.keyFile': [lineOfKey.slice(20, 40)],
    'notify.url': [secretOf('notify.url'), secretOf('its query')],
  };
  const schemas = new Map(keysOfSchema(configSchema(place.directory)).map(({ name, schema }) => [name, schema]));
  expect([...new Set(runs.flatMap((rows) => Object.keys(rows)))].sort()).toEqual([...schemas.keys()].sort());

  for (const [of, method] of [
    [Agent.prototype, 'start'],
    [Agent.prototype, 'onTurn'],
    [FleetMember.prototype, 'attach'],
  ] as unknown as [Record<string, (...args: unknown[]) => unknown>, string][]) {
    const usual = of[method];
    vi.spyOn(of, method).mockImplementation(function (this: unknown, ...args) {
      parts.recorded(method, args);
      return usual?.apply(this, args);
    });
  }
  // The page needs a thread of its own, and a drain a database.
  vi.spyOn(ViewThread.prototype, 'use').mockImplementation(async (...args) => void parts.recorded('use', args));
  vi.spyOn(ApiThread.prototype, 'use').mockImplementation(async ({ api }) => void parts.recorded('ask', [api]));
  const watched = vi.spyOn(FileWatch.prototype, 'watch');
  const reads = vi.spyOn(Reload.prototype, 'check').mockImplementation(() => {});
  const leaves = vi.spyOn(FleetMember.prototype, 'detach');
  vi.spyOn(FleetMember.prototype, 'drain').mockImplementation(async () => {
    await setImmediate();
    parts.recorded('drain', [{ isFollowing: leaves.mock.calls.length === 0 }]);
  });
  onTestFinished(() => {
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
  });

  const unusual = new Set<string>();
  const printed: string[] = [];
  for (const [index, rows] of runs.entries()) {
    parts.calls.clear();
    requests.length = 0;
    const state = { 'state.directory': [`state-${index}`], 'mirror.directory': [`mirror-${index}`] } as const;
    place.writeConfig(configOf({ ...state, ...rows }));
    const isFleet = Object.keys(rows).some((key) => key.startsWith('fleet.'));
    secrets = Object.keys(rows)
      .filter((key) => secretKeys.has(key))
      .flatMap((key) => ofKey[key] ?? [secretOf(key)])
      .concat(rows['auth.sessionCodeField'] === undefined || isFleet ? [] : [CODE]);
    const daemon = await runDaemon(place);
    const seen = { ...daemon, requests };
    const all = Object.entries(rows);
    const shown = new Map<string, unknown>();
    for (const [key, [, where]] of all)
      if (where !== undefined) shown.set(key, await until(`${key} of run ${index}`, () => where(seen), ARRIVAL_MS));
    for (const [key, [written]] of all.filter(([key]) => key.endsWith('File') && !READ_AT_USE.has(key))) {
      reads.mockClear();
      const reporter = watched.mock.lastCall?.[0].get(path.join(place.directory, String(written)));
      reporter?.();
      // A certificate is read anew though the configuration is the same.
      const read = key.startsWith('auth.') ? [] : [[{ asked: true }]];
      expect([key, reporter !== undefined, reads.mock.calls]).toEqual([key, true, read]);
    }
    const isQuoted = () => daemon.lines.some((line) => line.includes('refused: ***'));
    await until(`secrets of run ${index} to be quoted`, isQuoted, ARRIVAL_MS);
    const { port } = daemon.config.metrics.listen ?? {};
    const outputs = new Map([
      ['log', daemon.lines.join('')],
      ['report', JSON.stringify(reportOf(daemon.config, daemon.store, undefined))],
      ['metrics', port === undefined ? '' : JSON.stringify([...(await seriesAt(port))])],
    ]);
    await daemon.end();
    for (const [name, text] of textsIn(daemon.config.state.directory)) outputs.set(name, text);
    const found = [...outputs].flatMap(([name, text]) =>
      secrets.flatMap((each) => (text.includes(each) ? [`${each} in ${name}`] : [])),
    );
    expect(found).toEqual([]);
    const lines = PARTS.flatMap((part) => (parts.calls.get(part) ?? []).flatMap((args) => linesOf(args, part)));
    const received = [...new Set(lines.map((line) => plain(line, place)))];
    printed.push(`# run ${index}, where it is another one`, ...received.filter((line) => !printed.includes(line)), '');
    for (const [key, [written, where, ...others]] of all) {
      const schema = schemas.get(key);
      const expected = others.length > 0 ? others[0] : schema && v.parse(schema, written);
      const wanted = linesOf(expected, '').map((line) => plain(line, place));
      if (where !== undefined) expect(shown.get(key), `${key} of run ${index}`).toEqual(expected);
      else
        expect(
          wanted.filter((line) => !received.some((each) => each.endsWith(line))),
          key,
        ).toEqual([]);
      const usual = schema && v.safeParse(schema, undefined);
      if (!usual?.success || !isDeepStrictEqual(expected, usual.output)) unusual.add(key);
    }
  }
  await expect(printed.join('\n')).toMatchFileSnapshot('parts.txt');
  expect([...schemas.keys()].filter((key) => !unusual.has(key))).toEqual([]);
});
