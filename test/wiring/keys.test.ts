/**
 * Each key of the configuration arrives: the real daemon is composed from configurations in which every key has an
 * unusual value, and what its parts received or sent is compared. A key of the schema without a row here fails. parts.txt
 * has all that the parts of three of these daemons receive.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import * as v from 'valibot';
import { expect, onTestFinished, test, vi } from 'vitest';
import { freePort } from '../../simulator/free-port.ts';
import { Agent } from '../../src/agent/loop/agent.ts';
import { configSchema } from '../../src/config/schema.ts';
import { ApiThread } from '../../src/daemon/api-thread.ts';
import { Reload } from '../../src/daemon/reload.ts';
import { ViewThread } from '../../src/daemon/view-thread.ts';
import { FileWatch } from '../../src/daemon/watch-files.ts';
import { FleetMember } from '../../src/fleet/member.ts';
import { Place } from '../support/e2e-place.ts';
import { until } from '../support/e2e-until.ts';
import { keysOfSchema } from '../support/schema-keys.ts';
import { makeCertificates } from '../support/wire-certificates.ts';
import { bodyOf, closedAtEnd, startHttpServer } from '../support/wire-server.ts';
import { runDaemon } from './whole-daemon.ts';

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

/** `Calls.0.concurrency`: of the first argument of each call of Calls. */
type Where = string | readonly string[] | ((seen: Seen) => unknown);
/** What is written, where it arrives, and as what: as the schema reads it, if omitted. */
type Row = readonly [written: unknown, where: Where, expected?: unknown];

function valuesAt(where: string): unknown[] {
  const [part = '', ...steps] = where.split('.');
  const at = (value: unknown, step: string) => (value as Record<string, unknown> | null | undefined)?.[step];
  return (parts.calls.get(part) ?? []).map((args) => steps.reduce(at, args as unknown));
}

/** The parts whose arguments are printed. */
const PARTS = [
  ...['Calls', 'ServerShare', 'HttpClient', 'SignIn', 'SoapRemote', 'SoapJobService', 'RestRemote', 'RestJobService'],
  ...['Mirrors', 'DiskReserve', 'Results', 'DirectResults', 'shareTransfer', 'sshTransfer', 'Agent', 'Retention'],
  ...['Rule', 'FleetMember', 'attach', 'start', 'use'],
];

/** One line for each value; of what is made by a class, the class alone. */
function linesOf(value: unknown, name: string): string[] {
  if (typeof value === 'function') return [`${name} is a function`];
  if (typeof value !== 'object' || value === null) return [`${name} = ${JSON.stringify(value)}`];
  if (!Array.isArray(value) && Object.getPrototypeOf(value) !== Object.prototype)
    return [`${name} is a ${value.constructor.name}`];
  const members = Object.entries(value);
  if (members.length > 3 && members.every(([, each]) => typeof each === 'function'))
    return [`${name} has ${members.map(([key]) => key).join(' ')}`];
  return members.length === 0
    ? [`${name} is empty`]
    : members.flatMap(([key, each]) => linesOf(each, `${name}.${key}`));
}

/** What the parts of a daemon received, without what is another each time. */
const printedParts = (place: Place) =>
  PARTS.flatMap((part) => [...new Set((parts.calls.get(part) ?? []).flatMap((args) => linesOf(args, part)))]).map(
    (line) =>
      line
        .replaceAll(place.directory, 'DIR')
        .replaceAll(os.homedir(), 'HOME')
        .replaceAll(os.hostname(), 'HOST')
        .replaceAll(/127\.0\.0\.1:\d{2,}/g, '127.0.0.1:PORT')
        .replaceAll(/(?<=[pP]id = )\d+/g, 'PID')
        .replaceAll(/[\da-f]{8}-[-\da-f]{27}/g, 'ID')
        .replace(/-----BEGIN.*/, 'PEM'),
  );

const isSent = (text: string) => (seen: Seen) => seen.requests.some((request) => request.includes(text));
const sent = (written: string, text = written): Row => [written, isSent(text), true];
const made = (part: string) => (parts.calls.has(part) ? part : 'another');

/** Receives all requests: a sign-in returns CODE in an unusual member, everything else fails. A proxy, too. */
async function startService(requests: string[]): Promise<number> {
  const server = await startHttpServer(async (request, response) => {
    const body = await bodyOf(request);
    const proxyUser = Buffer.from(request.headers['proxy-authorization']?.split(' ')[1] ?? '', 'base64');
    requests.push(`${request.method} ${request.url} ${JSON.stringify(request.headers)} ${body} ${proxyUser}`);
    const isSignIn = request.url?.includes('SignIn') === true;
    response.writeHead(isSignIn ? 200 : 500, { 'content-type': 'application/json' });
    response.end(isSignIn ? JSON.stringify({ unusual: { code: CODE } }) : '');
  });
  return closedAtEnd(server).port;
}

/** Files that are not watched: they are read each time when they are used. */
const READ_AT_USE = new Set(['results.ssh.knownHostsFile', 'fleet.urlFile', 'view.tokenFile']);
/** Requests that a daemon makes after its start. */
const ARRIVAL_MS = 30_000;
const CODE = 'code-of-the-session-8841';
const PINNED = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIunusual';
const DATABASE = 'postgresql://unusual@127.0.0.1:9/jobs';

/** The rows of each run of the daemon, by key: what no run sets has its default there. */
async function runsOf(place: Place, port: number): Promise<Record<string, Row>[]> {
  const at = (name: string) => path.join(place.directory, name);
  const file = (name: string, text: string) => {
    fs.writeFileSync(at(name), text, { mode: 0o700 });
    return name;
  };
  const printing = (name: string, words: string) => [at(file(name, `#!/bin/sh\necho "${words}"\n`))];
  vi.stubEnv('CREDENTIALS_DIRECTORY', place.directory);
  for (const name of ['RUNTIME_DIRECTORY', 'XDG_RUNTIME_DIR']) vi.stubEnv(name, undefined);
  vi.stubEnv('UNUSUAL_VARIABLE', 'of-the-environment-1907');
  makeCertificates(place.directory);
  const ofClient = (name: string): Row => {
    const pem = fs.readFileSync(at(name), 'utf8');
    const member = { 'ca.pem': 'ca', 'client.pem': 'cert' }[name] ?? 'key';
    return [name, () => String(valuesAt(`HttpClient.0.tls.${member}`)[0]), pem];
  };
  const server = `http://127.0.0.1:${port}`;
  const metricsPort = await freePort();

  const soap: Record<string, Row> = {
    'service.protocol': ['soap', () => made('SoapRemote'), 'SoapRemote'],
    'service.fileTransferUrl': sent(`${server}/files-of-it`, 'POST /files-of-it'),
    'service.namespace': sent('urn:unusual:names/'),
    'watch.job': ['735', 'start.0.0.jobId'],
  };
  const signsIn = (method: string): Record<string, Row> => ({
    ...soap,
    'service.baseUrl': sent(`${server}/gateway`, 'POST /gateway/'),
    'auth.method': [method, 'SignIn.0.auth.method'],
    'auth.username': sent('unusual-user'),
    'auth.path': sent('below/SignIn', '/below/SignIn'),
    'auth.sessionCodeField': ['unusual.code', isSent(CODE), true],
  });
  /** Without a lease of a job, no call is made but the sign-in. */
  const inFleet = (method: string): Record<string, Row> => {
    const { 'watch.job': _, ...others } = signsIn(method);
    return {
      ...others,
      'service.fileTransferUrl': [`${server}/files-of-it`, 'SoapRemote.0.url'],
      'service.namespace': ['urn:unusual:names/', 'SoapRemote.0.namespace'],
      'auth.sessionCodeField': ['unusual.code', 'SignIn.0.auth.sessionCodeField'],
    };
  };
  const withCode: Record<string, Row> = { ...soap, 'auth.method': ['session-code', 'SignIn.0.auth.method'] };

  return [
    {
      ...signsIn('password'),
      'auth.passwordFile': [file('password', 'of-the-file-5521'), isSent('of-the-file-5521'), true],
      'auth.operation': sent('UnusualOperation'),
      'auth.sessionFaultPattern': [
        'gone 4711',
        () => (valuesAt('SoapRemote.0.isSessionFault')[0] as (fault: string) => boolean)('it is gone 4711'),
        true,
      ],
      'service.jobsUrl': sent(`${server}/jobs-of-it`, 'POST /jobs-of-it'),
      'service.soapVersion': sent('1.1', 'text/xml'),
      'service.concurrency': [7, ['Calls.0.concurrency', 'use.0.settings.service.concurrency']],
      'service.requestsPerMinute': [
        54_321,
        ['ServerShare.0.requestsPerMinute', 'use.0.settings.service.requestsPerMinute'],
      ],
      'service.timeoutSeconds': [
        17.5,
        ['HttpClient.0.limits.headersMs', 'HttpClient.0.limits.idleMs', 'Results.0.silentMs'],
      ],
      'service.tls.caFile': ofClient('ca.pem'),
      'service.tls.certFile': ofClient('client.pem'),
      'service.tls.keyFile': ofClient('client.key'),
      'service.compression': ['off', 'HttpClient.0.compression', undefined],
      'mirror.directory': ['copies', ['Mirrors.0', 'Results.0.mirrorDirectory', 'use.0.settings.mirrorDirectory']],
      'mirror.keepGenerations': [13, 'Agent.0.context.poll.liveFiles.keepGenerations'],
      'mirror.minFreeBytes': ['3 KiB', ['DiskReserve.1', 'Results.0.minFreeBytes']],
      'state.directory': ['records', ({ store }) => store.directory],
      'poll.minIntervalSeconds': [0.3, ['Agent.0.context.limits.intervals.minIntervalMs', 'Agent.0.context.pauseMs']],
      'poll.maxIntervalSeconds': [0.7, 'Agent.0.context.limits.intervals.maxIntervalMs'],
      'poll.overlapBytes': [612, 'Agent.0.context.poll.liveFiles.overlapBytes'],
      'results.intervalSeconds': [37, 'Agent.0.context.limits.resultsIntervalMs'],
      'results.include': [['*.unusual'], 'Results.0.rules.include'],
      'results.exclude': [['*.other'], 'Results.0.rules.exclude'],
      'results.maxFileBytes': ['5 GiB', 'Results.0.rules.maxFileBytes'],
      'results.transfer': ['direct', 'DirectResults.0.wanted'],
      'results.directAboveBytes': ['3 MiB', 'DirectResults.0.aboveBytes'],
      'results.bandwidthLimit': ['7 MiB', 'Results.0.rules.bandwidthLimit'],
      'results.shareRoots': [{ '/there': '/srv/unusual' }, 'shareTransfer.0.roots'],
      'results.ssh.hostKeys': ['strict', 'sshTransfer.0.hostKeys'],
      'results.ssh.knownHostsFile': ['hosts', 'sshTransfer.0.knownHostsFile'],
      'results.ssh.pinnedKeys': [[PINNED], 'sshTransfer.0.pinnedKeys'],
      'watch.tasks': [['9100'], 'start.0.0.tasks'],
      'watch.files': [['log'], 'start.0.0.files'],
      'watch.results': [false, 'start.0.0.results'],
      'watch.settleAfterMinutes': [11, 'start.0.0.settleAfterMs'],
      'watchMine.include': [['mine*'], 'start.1.include'],
      'watchMine.exclude': [['others*'], 'start.1.exclude'],
      'watchMine.maxAgeDays': [3, 'start.1.maxAgeMs'],
      'watchMine.maxJobs': [23, 'start.1.maxJobs'],
      'errors.patterns': [['unusual end'], 'use.0.settings.errorPatterns'],
      'notify.on': [['match', 'failed'], 'Rule.0.on'],
      'notify.jobs': [['735'], 'Rule.0.jobs'],
      'notify.files': [['log'], 'Rule.0.files'],
      'notify.match': ['unusual line', 'Rule.0.match'],
      'notify.url': ['http://127.0.0.1:9/hook', 'Rule.0.url'],
      'notify.secretFile': [file('hook', 'of-the-hook'), 'Rule.0.secretFile'],
      'notify.proxy': ['http://127.0.0.1:9', 'Rule.0.proxy'],
      'notify.caFile': ['ca.pem', 'Rule.0.caFile'],
      stallAfterMinutes: [19, 'Agent.0.context.limits.stallAfterMs'],
      'retention.settledDays': [29, 'Retention.0.rule.settledMs'],
      'retention.deleteFiles': [true, 'Retention.0.rule.deleteFiles'],
      'logging.level': ['trace', ({ log }) => log.level],
      'metrics.listen': [
        `127.0.0.1:${metricsPort}`,
        async () => (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).ok,
        true,
      ],
      'view.listen': ['127.0.0.1:9', 'use.0.settings.listen'],
      'view.tokenFile': ['token', 'use.0.settings.tokenFile'],
      'view.publicUrl': ['https://view.example.org/unusual/', 'use.0.settings.publicUrl'],
      'api.directory': ['sockets', 'ask.0.api.directory'],
      'api.controlGroup': ['unusual-group', 'ask.0.api.controlGroup'],
    },
    {
      'service.protocol': ['rest', () => made('RestRemote'), 'RestRemote'],
      'service.path': sent('unusual-path', '/gateway/unusual-path/'),
      'service.baseUrl': sent(`${server}/gateway`, ' /gateway/unusual-path/'),
      'auth.username': ['unusual-user', 'SignIn.0.auth.username'],
      'auth.passwordCommand': [
        printing('print-password', 'of-the-program-$UNUSUAL_VARIABLE'),
        isSent('of-the-program-of-the-environment-1907'),
        true,
      ],
      'auth.commandEnvironment': [['UNUSUAL_VARIABLE'], isSent('of-the-environment-1907'), true],
      'auth.commandTimeoutSeconds': [47, 'SignIn.0.auth.secret.timeoutMs'],
      'results.enabled': [false, 'Agent.0.resultsOfMine'],
      'watch.job': ['736', 'start.0.0.jobId'],
      'notify.on': [['stalled'], 'Rule.0.on'],
      'notify.command': [['page', 'unusual'], 'Rule.0.command'],
      'notify.commandEnvironment': [['GNUPGHOME'], 'Rule.0.commandEnvironment'],
    },
    {
      ...signsIn('password'),
      'service.baseUrl': sent('http://middleware.example.org', 'POST http://middleware.example.org/'),
      'service.fileTransferUrl': ['http://middleware.example.org/files', 'SoapRemote.0.url'],
      'service.namespace': ['urn:other', 'SoapRemote.0.namespace'],
      'service.proxy': [server, 'HttpClient.0.proxy'],
      'service.proxyUserFile': [file('proxy-user', 'proxy:of-the-proxy'), isSent('proxy:of-the-proxy'), true],
      'auth.username': ['unusual-user', 'SignIn.0.auth.username'],
      'auth.path': ['/below', 'SignIn.0.auth.path'],
      'auth.sessionCodeField': ['unusual.code', 'SignIn.0.auth.sessionCodeField'],
      'auth.passwordCredential': ['password', 'SignIn.0.auth.secret.name'],
    },
    {
      ...signsIn('password'),
      'auth.passwordCredential': ['password', isSent('of-the-file-5521'), true],
      'notify.on': [['agent-degraded'], 'Rule.0.on'],
      'notify.mail': ['unusual@example.org', 'Rule.0.mail'],
    },
    {
      ...inFleet('cloud-platform'),
      'auth.projectId': sent('7731'),
      'auth.tokenFile': [file('token', 'token-of-the-file'), isSent('token-of-the-file'), true],
      'fleet.url': [DATABASE, ['FleetMember.0.url', 'use.0.fleet.url']],
      'fleet.name': ['unusual-agent', 'FleetMember.0.settings.name'],
      'fleet.maxJobs': [31, 'FleetMember.0.settings.maxJobs'],
      'fleet.heartbeatSeconds': [43, 'FleetMember.0.settings.heartbeatMs', 43_000],
      'fleet.schema': ['unusual_schema', 'FleetMember.0.schema'],
      'fleet.drainOnStop': [true, 'drain.0.isFollowing'],
      'fleet.separateMirrors': [true, 'FleetMember.0.settings.separateMirrors'],
      'view.publicUrl': ['https://view.example.org/of-fleet/', 'FleetMember.0.about.view'],
    },
    {
      ...inFleet('openid'),
      'auth.tokenCommand': [printing('print-token', 'token-of-the-program'), isSent('token-of-the-program'), true],
      'fleet.urlFile': [file('database', DATABASE), 'FleetMember.0.url', DATABASE],
    },
    {
      ...inFleet('external-token'),
      'auth.tokenCredential': ['token', isSent('token-of-the-file'), true],
      'fleet.urlCredential': ['database', 'FleetMember.0.url', DATABASE],
    },
    { ...withCode, 'auth.sessionCodeFile': [file('code', 'code-of-the-file'), isSent('code-of-the-file'), true] },
    {
      ...withCode,
      'auth.sessionCodeCommand': [printing('print-code', 'code-of-the-program'), isSent('code-of-the-program'), true],
    },
    { ...withCode, 'auth.sessionCodeCredential': ['code', isSent('code-of-the-file'), true] },
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

test('each key of the schema arrives at the part of the daemon that needs it', async (context) => {
  const place = Place.make(context);
  const requests: string[] = [];
  const runs = await runsOf(place, await startService(requests));
  const schemas = new Map(keysOfSchema(configSchema(place.directory)).map(({ name, schema }) => [name, schema]));
  expect([...new Set(runs.flatMap((rows) => Object.keys(rows)))].sort()).toEqual([...schemas.keys()].sort());

  const { start } = Agent.prototype;
  const { attach } = FleetMember.prototype;
  vi.spyOn(FleetMember.prototype, 'attach').mockImplementation(function (this: FleetMember, ...args) {
    parts.recorded('attach', args);
    return attach.apply(this, args);
  });
  vi.spyOn(Agent.prototype, 'start').mockImplementation(function (this: Agent, ...args) {
    parts.recorded('start', args);
    return start.apply(this, args);
  });
  // The page needs a thread of its own, and a drain a database.
  vi.spyOn(ViewThread.prototype, 'use').mockImplementation(async (...args) => void parts.recorded('use', args));
  vi.spyOn(ApiThread.prototype, 'use').mockImplementation(async (...args) => void parts.recorded('ask', args));
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
  const printed = new Map<string, string[]>();
  for (const [index, rows] of runs.entries()) {
    parts.calls.clear();
    requests.length = 0;
    const state = { 'state.directory': [`state-${index}`, ''], 'mirror.directory': [`mirror-${index}`, ''] } as const;
    place.writeConfig(configOf({ ...state, ...rows }));
    const daemon = await runDaemon(place);
    const seen = { ...daemon, requests };
    const all = Object.entries(rows);
    const shown = new Map<string, unknown>();
    for (const [key, [, where]] of all)
      if (typeof where === 'function')
        shown.set(key, await until(`${key} of run ${index}`, () => where(seen), ARRIVAL_MS));
    for (const [key, [written]] of all.filter(([key]) => key.endsWith('File') && !READ_AT_USE.has(key))) {
      reads.mockClear();
      const reporter = watched.mock.lastCall?.[0].get(path.join(place.directory, String(written)));
      reporter?.();
      // A certificate is read anew though the configuration is the same.
      const read = key.startsWith('auth.') ? [] : [[{ asked: true }]];
      expect([key, reporter !== undefined, reads.mock.calls]).toEqual([key, true, read]);
    }
    await daemon.end();
    const what = { 0: 'SOAP', 1: 'REST', 4: 'a fleet' }[index];
    if (what !== undefined) printed.set(what, printedParts(place));
    for (const [key, [written, where, ...others]] of all) {
      const schema = schemas.get(key);
      const expected = others.length > 0 ? others[0] : schema && v.parse(schema, written);
      const places = typeof where === 'function' ? [[shown.get(key)]] : [where].flat().map(valuesAt);
      for (const values of places) {
        expect(values.length, `${key} of run ${index}: a part is not made`).toBeGreaterThan(0);
        for (const value of values) expect(value, `${key} of run ${index}`).toEqual(expected);
      }
      const usual = schema && v.safeParse(schema, undefined);
      if (!usual?.success || !isDeepStrictEqual(expected, usual.output)) unusual.add(key);
    }
  }
  const [, usual = []] = [...printed][0] ?? [];
  const texts = [...printed].map(([what, lines]) => {
    const others = lines === usual ? lines : lines.filter((line) => !usual.includes(line));
    return `# ${what}${lines === usual ? '' : ', where it is another one'}\n${others.join('\n')}\n`;
  });
  await expect(texts.join('\n')).toMatchFileSnapshot('parts.txt');
  expect([...schemas.keys()].filter((key) => !unusual.has(key))).toEqual([]);
});
