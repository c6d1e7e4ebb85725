import { chmod, mkdir } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import { join, resolve } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { parse } from 'yaml';
import { loadConfig } from '../../src/config/load.ts';
import type { JobtailError } from '../../src/errors.ts';
import { failureOf } from '../support/errors.ts';
import { needsThat } from '../support/needs.ts';
import { numRuns } from '../support/property-runs.ts';
import { configDirectory, MINIMAL } from './files.ts';

const { path, write, load, refusal } = configDirectory();

describe('a configuration that is fine', () => {
  it('is completed with the defaults of its protocol', async () => {
    const file = await write(MINIMAL);
    expect(await loadConfig(file)).toMatchObject({
      file,
      service: {
        protocol: 'soap',
        fileTransferUrl: 'https://m.example.org/FileTransferWs',
        namespace: 'http://m.example.org/',
        soapVersion: '1.2',
        baseUrl: 'https://m.example.org',
        jobsUrl: null,
        concurrency: 4,
        requestsPerMinute: null,
        timeoutMs: 60_000,
        tls: { caFile: null, certFile: null, keyFile: null },
        proxy: null,
        proxyUserFile: null,
        compression: 'auto',
      },
      auth: {
        method: 'password',
        username: 'alice',
        secret: { kind: 'file', path: path('password') },
        path: '/service/UserAndLimitationManagement',
        operation: null,
        sessionCodeField: null,
        sessionFaultPattern: null,
      },
    });
  });

  // docs/configuration.md has them, and is made of the schema (test/cli/command-line.test.ts).
  it('is the example of the repository, with the same defaults', async () => {
    const file = resolve(import.meta.dirname, '../../config.example.yaml');
    const beside = (name: string) => resolve(file, '..', name);
    const example = await loadConfig(file);
    const minimal = await load(
      'service: {protocol: rest, baseUrl: https://m.example.org}\nauth: {username: alice, passwordFile: password}\n',
    );
    const { file: _e, service: exampleService, auth: exampleAuth, ...exampleRest } = example;
    const { file: _m, service: minimalService, auth: minimalAuth, ...minimalRest } = minimal;
    const mirror = { ...minimalRest.mirror, directory: beside('mirror') };
    const api = { directory: null, controlGroup: null };
    expect(exampleRest).toEqual({ ...minimalRest, mirror, api, state: { directory: beside('state') } });
    expect(Object.keys(exampleService)).toEqual(Object.keys(minimalService));
    expect(exampleAuth).toEqual({ ...minimalAuth, secret: { kind: 'file', path: beside('password') } });
  });

  it('reads the transfer soap of 0.2.0 as service', async () => {
    const rest =
      'service: {protocol: rest, baseUrl: https://m.example.org}\nauth: {username: alice, passwordFile: password}\n';
    for (const word of ['soap', 'service'])
      expect(await load(`${rest}results: {transfer: ${word}}\n`)).toMatchObject({ results: { transfer: 'service' } });
  });

  // That each key arrives as the schema reads it: test/wiring/keys.test.ts.
  it.each([
    ['service: {soapVersion: 1.1}', { service: { soapVersion: '1.1' } }],
    ['service: {baseUrl: "http://127.0.0.1:8080/prefix/"}', { service: { baseUrl: 'http://127.0.0.1:8080/prefix' } }],
    ['service: {timeoutSeconds: 0.25}', { service: { timeoutMs: 250 } }],
    [
      'service: {tls: {caFile: ca.pem, certFile: tls/cert.pem, keyFile: /abs/key.pem}}',
      { service: { tls: { caFile: path('ca.pem'), certFile: path('tls/cert.pem'), keyFile: '/abs/key.pem' } } },
    ],
    ['auth: {path: heappe//Management/}', { auth: { path: '/heappe/Management' } }],
    [
      'auth: {method: cloud-platform, projectId: "9223372036854775807", passwordFile: , tokenCommand: [./token, "--for"], commandTimeoutSeconds: 1.5}',
      {
        auth: {
          projectId: '9223372036854775807',
          secret: { kind: 'command', argv: [path('token'), '--for'], timeoutMs: 1500 },
        },
      },
    ],
    ['mirror: {directory: ../mirror}', { mirror: { directory: resolve(path('..'), 'mirror') } }],
    ['state: {directory: ./state}', { state: { directory: path('state') } }],
    ['poll: {minIntervalSeconds: 0.05, maxIntervalSeconds: 0.05}', { poll: { minIntervalMs: 50, maxIntervalMs: 50 } }],
    [
      'results: {intervalSeconds: 5, maxFileBytes: 1.5 GiB, bandwidthLimit: 20 MiB}',
      { results: { intervalMs: 5000, maxFileBytes: 1.5 * 2 ** 30, bandwidthLimit: 20 * 2 ** 20 } },
    ],
    [
      'results: {shareRoots: {/scratch: /mnt/scratch, /home/project: ./home}, ssh: {knownHostsFile: hosts}}',
      {
        results: {
          shareRoots: { '/scratch': '/mnt/scratch', '/home/project': path('home') },
          ssh: { knownHostsFile: path('hosts') },
        },
      },
    ],
    ['watchMine: {maxAgeDays: 0.5}', { watchMine: { maxAgeMs: 43_200_000 } }],
    ['fleet: {urlFile: db, heartbeatSeconds: 30}', { fleet: { urlFile: path('db'), heartbeatMs: 30_000 } }],
    ['stallAfterMinutes: 0.5', { stallAfterMs: 30_000 }],
    ['retention: {settledDays: 30}', { retention: { settledMs: 30 * 86_400_000 } }],
    [
      'notify: [{on: [failed], url: "https://example.org/x", secretFile: k}]',
      { notify: [{ on: ['failed'], jobs: ['**'], command: null, mail: null, secretFile: path('k') }] },
    ],
    ['metrics: {listen: "[::1]:0"}', { metrics: { listen: { host: '::1', port: 0 } } }],
    ['view: {tokenFile: token}', { view: { tokenFile: path('token') } }],
    [
      'watch: [{job: "501", tasks: [9001, "9002"], files: [log], settleAfterMinutes: 0.5}, {job: 502}, {job: 503, tasks: []}]',
      {
        watch: [
          { job: '501', tasks: ['9001', '9002'], files: ['log'], results: true, settleAfterMs: 30_000 },
          { job: '502', tasks: null, files: ['stdout', 'stderr', 'log', 'progress'], settleAfterMs: null },
          { job: '503', tasks: [] },
        ],
      },
    ],
  ])('is read in its units, with whole paths: %s', async (yaml, read) => {
    const all = parse(MINIMAL.replace('auth:', '  jobsUrl: https://m.example.org/J\nauth:')) as Record<string, object>;
    const [[section, keys] = ['', {}]] = Object.entries(parse(yaml) as Record<string, object>);
    const merged = Array.isArray(keys) || typeof keys !== 'object' ? keys : { ...all[section], ...keys };
    const text = JSON.stringify({ ...all, [section]: merged }, (_, value) => value ?? undefined);
    expect(await load(text)).toMatchObject(read);
  });

  it('is called by its host in a fleet, unless it is said otherwise', async () => {
    const url = 'postgresql://jobtail@db.example.org/jobtail?sslmode=verify-full';
    const { fleet } = await load(`${MINIMAL}fleet: {url: '${url}'}\n`);
    expect(fleet).toMatchObject({ url, maxJobs: 2000, heartbeatMs: 15_000, schema: 'jobtail', drainOnStop: false });
    expect(fleet?.name).toMatch(/^[\w.-]{1,63}$/);
    // Linux allows one character more.
    onTestFinished(() => {
      vi.restoreAllMocks();
      syncBuiltinESMExports();
    });
    vi.spyOn(os, 'hostname').mockReturnValue(`node 1${'x'.repeat(58)}`);
    syncBuiltinESMExports();
    const { fleet: ofLongHost } = await load(`${MINIMAL}fleet: {url: '${url}'}\n`);
    expect(ofLongHost?.name).toBe(`node-1${'x'.repeat(57)}`);
  });

  it.each(['true', '{}', '{maxAgeDays: 1}'])('follows all jobs of the user with watchMine: %s', async (mine) => {
    const jobs = '  jobsUrl: https://m.example.org/JobManagementWs\nauth:';
    const { watchMine } = await load(`${MINIMAL.replace('auth:', jobs)}watchMine: ${mine}\n`);
    expect(watchMine).toEqual({ include: ['**'], exclude: [], maxAgeMs: 86_400_000, maxJobs: 200 });
  });

  it.each(['true', '{}', '{listen: 127.0.0.1:9470}'])(
    'has a view of this machine alone with view: %s',
    async (view) => {
      const listen = { host: '127.0.0.1', port: 9470 };
      expect((await load(`${MINIMAL}view: ${view}\n`)).view).toEqual({ listen, tokenFile: null, publicUrl: null });
    },
  );

  it.each(['false', '', 'null'])('has none with view: %s', async (view) => {
    expect((await load(`${MINIMAL}view: ${view}\n`)).view).toBeNull();
  });

  it('needs neither user nor address of a sign-in with a ready session code', async () => {
    const config = await load(
      MINIMAL.replace(/ {2}baseUrl.*\n/, '').replace(
        / {2}username.*\n.*\n/,
        '  method: session-code\n  sessionCodeCredential: code\n',
      ),
    );
    expect(config.service.baseUrl).toBeNull();
    expect(config.auth).toMatchObject({ method: 'session-code', secret: { kind: 'credential', name: 'code' } });
  });

  it.each([
    ['empty sections', `${MINIMAL}mirror:\npoll:\nwatch:\nresults: {}\n`],
    ['a byte-order mark and CRLF', `\uFEFF${MINIMAL.replaceAll('\n', '\r\n')}`],
    [
      'JSON',
      '{"service": {"protocol": "soap", "fileTransferUrl": "http://a/", "namespace": "n", "baseUrl": "http://a"}, "auth": {"username": "u", "passwordFile": "p"}}',
    ],
    ['anchors', `${MINIMAL}poll: {minIntervalSeconds: &s 5, maxIntervalSeconds: *s}\n`],
  ])('may be written with %s', async (_what, yaml) => {
    await expect(load(yaml)).resolves.toBeDefined();
  });

  it('keeps every 64-bit id exact, as a number and as text', async () => {
    const long = fc.bigInt({ min: 1n, max: 2n ** 63n - 1n });
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(long, { minLength: 1, maxLength: 5 }), fc.boolean(), async (ids, quoted) => {
        const written = ids.map((id) => (quoted ? `"${id}"` : `${id}`));
        const entries = written.map((id) => `  - {job: ${id}, tasks: [${written.join(', ')}]}\n`);
        const { watch } = await load(`${MINIMAL}watch:\n${entries.join('')}`);
        expect(watch.map((entry) => entry.job)).toEqual(ids.map(String));
        expect(watch[0]?.tasks).toEqual(ids.map(String));
      }),
      numRuns(50),
    );
  });
});

it.each([
  ['/var/lib/agent/state', '/run/agent'],
  ['/var/lib/agent@second.unit/state/', '/run/agent@second.unit'],
  ['/var/lib/other/state', null],
  ['/var/lib/agent/state/inner', null],
  ['/srv/var/lib/agent/state', null],
])('the sockets of an agent with the state %s are in %s', async (state, directory) => {
  expect((await load(`${MINIMAL}state: {directory: ${state}}\n`)).api).toEqual({ directory, controlGroup: null });
});

describe('a file that cannot be used', () => {
  it('has more than a MiB', async () => {
    const [text, bytes] = [`${MINIMAL}#`, 1024 * 1024];
    expect((await load(text.padEnd(bytes, 'x'))).service.protocol).toBe('soap');
    expect((await refusal(text.padEnd(bytes + 1, 'x'))).message).toContain('the file is larger than 1048576 bytes');
  });

  it('has a key that is unknown after a byte-order mark', async () => {
    expect((await refusal('\ufeffcolours: 1\n')).message).toContain('.yaml:1:1: colours: unknown key');
  });

  it.each([
    ['nothing there', async () => path('missing.yaml'), 'there is no such file'],
    ['a file in place of a directory', async () => join(await write('x'), 'config.yaml'), 'there is no such file'],
    ['a directory', () => mkdir(path('d'), { recursive: true }).then(() => path('d')), 'this is a directory'],
    ['an empty file', () => write(''), 'the file contains no configuration'],
    ['comments only', () => write('# nothing\n# here\n'), 'the file contains no configuration'],
    ['Latin-1', () => write(Buffer.from('auth: {username: J\xe1n}', 'latin1')), 'the file is not UTF-8 text'],
    ['UTF-16', () => write(Buffer.from('\uFEFFauth: {}', 'utf16le')), 'the file is not UTF-8 text'],
  ])('says so: %s', async (_what, make, said) => {
    const file = await make();
    const error = await failureOf(loadConfig(file));
    expect(error.code).toBe('config');
    expect(error.message).toContain(`${file}: ${said}`);
    expect(error.hint).toBeTruthy();
  });

  it.each([
    [0, 'config', 'other users than root can change this file, and root would run its programs'],
    [1_000, undefined, undefined],
  ])('that another user can change is refused to root: as user %i, the error is %s', async (user, code, reason) => {
    const file = await write(MINIMAL);
    await chmod(file, 0o646);
    const own = vi.spyOn(process, 'geteuid').mockReturnValue(user);
    onTestFinished(() => own.mockRestore());
    const error = await loadConfig(file).then(
      () => undefined,
      (thrown: JobtailError) => thrown,
    );
    expect([error?.code, error?.message]).toEqual([code, reason && `${file}: ${reason}`]);
    expect(error?.hint).toBe(
      code && 'run the agent as the user of the file, or make root the owner of the file and its directories',
    );
  });

  it(
    'says so: no right to read it',
    needsThat(process.getuid?.() !== 0, 'a file without rights: root reads it'),
    async () => {
      const file = await write(MINIMAL);
      await chmod(file, 0);
      expect((await failureOf(loadConfig(file))).message).toBe(`${file}: no right to read this file`);
    },
  );
});

describe('YAML that is wrong as such', () => {
  const SECRET = 'hunter2';
  it.each([
    ['an open quote', 'auth: {password: "hunter2}', /1:\d+: a character is missing/],
    ['an open bracket', 'auth: {password: hunter2', /1:25: wrong indentation, or a bracket/],
    ['a duplicate key', 'poll:\n  overlapBytes: 1\n  overlapBytes: 2\n', /3:3: overlapBytes: expected every key once/],
    ['a duplicate section', 'auth: {}\nauth: {}\n', /2:1: auth: expected every key once/],
    ['a tab', 'auth:\n\tusername: alice\n', /2:1: a tab stands in the indentation/],
    ['wrong indentation', 'auth:\n  username: a\n passwordFile: b\n', /3:\d+: wrong indentation/],
    ['a bad escape', 'auth: {password: "\\hunter2"}', /1:\d+: an unknown escape/],
    ['a text that begins with @', 'auth: {password: @hunter2}', /1:\d+: a text that begins with this character/],
    ['two keys in a line', 'auth: password: hunter2', /1:\d+: a key with its value cannot begin here/],
    ['two documents', 'auth: {}\n---\nauth: {}\n', /2:1: a second document begins here/],
    ['an unknown tag', 'auth: !hunter2 {}\n', /1:7: an unknown tag/],
    ['an unknown alias', 'auth: *hunter2\n', /an alias or anchor that is not known|aliases/],
    ['a text in the place of all', 'hunter2', /yaml:1:1: expected a section .*, found a text \(not shown\)/],
    [
      'a text in the place of auth',
      'auth: hunter2',
      /yaml:1:7: auth: expected a section .*, found a text \(not shown\)/,
    ],
    ['a value in auth', 'auth: {username: 5}', /1:18: auth\.username: expected .*, found 5 \(number\)/],
    ['text after a quoted text', 'auth: {password: "x" hunter2}', /1:\d+: /],
    ['a block header with text', 'auth: |hunter2\n  x\n', /1:\d+: this is no YAML/],
    ['a list as a key', '? [hunter2]\n: x\n', /1:3: a key must be a plain word/],
    ['brackets without end', '['.repeat(10_000), /RESOURCE_EXHAUSTION/],
    ['an alias of itself', 'auth: &a [*a]\n', /./],
    ['aliases without end', billionLaughs(), /aliases|expected/],
  ])('%s', async (_what, yaml, said) => {
    const error = await refusal(yaml);
    expect(error.code).toBe('config');
    expect(error.message).toMatch(said);
    expect(error.message).not.toContain(SECRET);
  });
});

function billionLaughs(): string {
  const lines = Array.from({ length: 9 }, (_, n) => `a${n + 1}: &a${n + 1} [${Array(9).fill(`*a${n}`).join(', ')}]`);
  return `a0: &a0 [x]\n${lines.join('\n')}\n`;
}

describe('of what may be a secret, a message shows the kind alone', () => {
  const SECRET = 'T0001/B0001/SECRETx8Yq2LmN0pQ';
  it.each([
    ['an address of a webhook without https://', `notify: [{url: "hooks.example.com/${SECRET}", on: [failed]}]`],
    ['a command that is a text', `notify: [{command: "curl -H ${SECRET}", on: [failed]}]`],
    ['a word of a command that is none', `notify: [{command: [curl, "${SECRET}\\n"], on: [failed]}]`],
    ['a name of an event', `notify: [{url: "https://h.example.com/", on: ["${SECRET}"]}]`],
    ['a rule that is a text', `notify: ["https://h.example.com/${SECRET}"]`],
    ['a section that is a text', `notify: "https://h.example.com/${SECRET}"`],
    ['a number', 'notify: [{command: 12345678}]'],
    ['a blank that is missing', `notify: [{url:https://h.example.com/${SECRET}: x, on: 5}]`],
    ['the proxy of a rule', `notify: [{url: "https://h.example.com/", proxy: "u:${SECRET}@p:1", on: [failed]}]`],
    ['the proxy of the service', `service: {proxy: "u:${SECRET}@p:3128"}`],
    ['the address of the database', `fleet: {url: "postgresql://u:${SECRET}@db"}`],
    ['a fleet that is a text', `fleet: "postgresql://u:${SECRET}@db"`],
    ['a name in the fleet', `fleet: {name: "${SECRET} "}`],
  ])('%s', async (_what, yaml) => {
    const { message } = await refusal(yaml);
    expect(message).not.toMatch(/SECRETx8|T0001|12345678/);
    expect(message).toContain('(not shown)');
  });
});

it('a configuration of more than 1 MiB is refused before it is read as YAML', async () => {
  expect((await refusal(`${MINIMAL}# ${'x'.repeat(1024 * 1024)}\n`)).message).toContain('larger than 1048576 bytes');
});
