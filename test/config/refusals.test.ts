/** Every wrong value gets a line with its place, its key, what was expected and what was found. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { numRuns } from '../support/property-runs.ts';
import { configDirectory, MINIMAL } from './files.ts';

const { load, refusal } = configDirectory();

/** MINIMAL with one line put into a section, instead of the line of the same key if there is one. */
function withLine(sectionName: string, line: string): string {
  const key = line.slice(0, line.indexOf(':'));
  const lines = MINIMAL.split('\n').filter((other) => other.trimStart().slice(0, key.length + 1) !== `${key}:`);
  const at = lines.indexOf(`${sectionName}:`);
  if (at < 0) return `${MINIMAL}${sectionName}:\n  ${line}\n`;
  return lines.toSpliced(at + 1, 0, `  ${line}`).join('\n');
}

/** A section, a line of it, and what the refusal says. */
const WRONG_VALUES = String.raw`
  service | fileTransferUrl: 5 | service.fileTransferUrl: expected an address that starts with http:// or https://, without a password in it, found 5 (number)
  service | fileTransferUrl: http://alice:hunter2@m/ | found "http://***@m/" (text)
  service | namespace: "" | service.namespace: expected a text that is not empty, found "" (text)
  service | soapVersion: "1.3" | service.soapVersion: expected "1.1" or "1.2", found "1.3" (text)
  service | baseUrl: http://m/?x=1 | service.baseUrl: expected an address without a query (?...), found "http://m/?x=1" (text)
  service | concurrency: 0 | service.concurrency: expected a whole number from 1 to 1000, found 0 (number)
  service | requestsPerMinute: 99999999999999999999 | found 99999999999999999999 (number)
  service | timeoutSeconds: 0 | service.timeoutSeconds: expected a number of seconds above 0, at most 86400, found 0 (number)
  service | tls: yes | service.tls: expected a section (keys with their values), found "yes" (text)
  service | tls: {caFile: 1} | service.tls.caFile: expected a path (written in full: ~ is not expanded), found 1 (number)
  mirror | directory: "$HOME/m" | found "$HOME/m" (text)
  mirror | directory: "~alice/m" | found "~alice/m" (text)
  mirror | directory: "%h/m" | found "%h/m" (text)
  service | contentEncoding: auto | service.contentEncoding: removed: text counts as UTF-8, and live files
  watchMine | mostJobs: 5 | watchMine.mostJobs: renamed: write maxJobs
  service | compression: on | service.compression: expected one of auto, off, found "on" (text)
  auth | method: passwort | auth.method: expected one of openid, external-token, cloud-platform, password, session-code, api-key, found "passwort" (text)
  auth | username: 12345 | auth.username: expected a text that is not empty, found 12345 (number)
  auth | method: cloud-platform | auth.projectId: expected the id of the project, which the method cloud-platform sends, found nothing
  auth | method: openid | auth.passwordFile: expected no such key with the method openid (its secret is one of tokenFile, tokenCommand, tokenCredential), found a text (not shown)
  auth | method: openid | auth: expected exactly one of tokenFile, tokenCommand, tokenCredential for the method openid, found none of them
  auth | passwordCommand: [pass] | auth: expected exactly one of passwordFile, passwordCommand, passwordCredential for the method password, found passwordFile and passwordCommand
  auth | projectId: 7 | auth.projectId: expected no such key with the method password (only cloud-platform sends a project), found 7 (number)
  auth | projectId: seven | auth.projectId: expected the id of a project: a whole number of at most 64 bits, found "seven" (text)
  auth | passwordFile: 271828 | auth.passwordFile: expected a path (written in full: ~ is not expanded), found a number (not shown)
  auth | passwordCommand: pass show hunter2 | auth.passwordCommand: expected a list of texts: the program and its arguments, without a shell, found a text (not shown)
  auth | passwordCommand: [] | auth.passwordCommand: expected at least the name of a program, found an empty list
  auth | path: a?b | auth.path: expected a path such as /service/UserAndLimitationManagement, found "a?b" (text)
  auth | operation: "Sign In" | auth.operation: expected the name of an operation, found "Sign In" (text)
  auth | sessionFaultPattern: "(" | auth.sessionFaultPattern: expected a regular expression that is quick for any text (no repetition inside of another one), found "(" (text)
  mirror | directory: "a\0b" | found "a\u0000b" (text)
  poll | minIntervalSeconds: 61 | poll.maxIntervalSeconds: expected a number of seconds that is not below minIntervalSeconds (61), found 60
  api | controlGroup: "!wheel" | api.controlGroup: expected the name or the number of a group, found "!wheel" (text)
  poll | overlapBytes: 0 | poll.overlapBytes: expected a number of bytes from 4 to 1020, or a size such as "512 MiB", found 0 (number)
  poll | overlapBytes: 2 MiB | found "2 MiB" (text)
  results | enabled: "yes" | results.enabled: expected true or false, found "yes" (text)
  results | include: "**" | results.include: expected a list of patterns such as ["**"], found "**" (text)
  results | include: [] | results.include: expected at least one pattern (enabled: false turns results off), found an empty list
  results | exclude: [1] | results.exclude[0]: expected a pattern such as *.dat (put it in quotes), found 1 (number)
  results | exclude: ["**/a/**/b/**", "**/a/**/b/**/c"] | results.exclude[1]: expected a pattern with at most two ** before its end, found "**/a/**/b/**/c" (text)
  results | include: ["**", "/sub/../x"] | results.include[1]: expected a pattern that a path can match
  results | include: ["!a"] | results.include: expected a pattern without ! before it
  results | maxFileBytes: 10 XB | results.maxFileBytes: expected a number of bytes from 1 to
  results | shareRoots: [a] | results.shareRoots: expected paths of the server with paths of this machine
  results | shareRoots: {scratch: /mnt/s} | results.shareRoots: expected paths of the server with paths of this machine
  results | shareRoots: {/scratch: ""} | results.shareRoots: expected paths of the server with paths of this machine
  results | shareRoots: {/scratch: /} | results.shareRoots."/scratch": expected a directory with files of the cluster
  results | shareRoots: {/scratch: /etc/../proc/self} | (it is within /proc, which no service may read)
  results | shareRoots: {/scratch: /mnt/../etc} | (it is /etc, which no service may read), found /etc
  results | shareRoots: {/scratch: /var/lib} | (it contains /var/lib/agent/state, which no service may read)
  results | shareRoots: {/scratch: /var/lib/agent/state/x} | (it is within /var/lib/agent/state, which no
  results | ssh: {hostKeys: never} | results.ssh.hostKeys: expected one of accept-new, strict
  results | ssh: {pinnedKeys: [abc]} | results.ssh.pinnedKeys[0]: expected a public key such as
  results | transfer: scp | results.transfer: expected one of service, direct, auto, found "scp" (text)
  watch | {job: 501} | watch: expected a list of jobs such as {job: 501, tasks: [9001]}, found a section
  watch | - 501 | watch[0]: expected a section (keys with their values), found 501 (number)
  watch | - {job: 9223372036854775808} | watch[0].job: expected a job id (1 or more): a whole number of at most 64 bits, found 9223372036854775808 (number)
  watch | - {tasks: [1]} | watch[0].job: expected a job id (1 or more): a whole number of at most 64 bits, found nothing
  fleet | name: anna | fleet: expected exactly one of url, urlFile, urlCredential, found none of them
  fleet | url: postgresql://alice:hunter2@db/x | without a password in it, found a text (not shown)
  fleet | url: "postgresql://db/x?password=hunter2" | fleet.url: expected an address such as postgresql://
  fleet | url: postgresql://db/x?sslmode=yes | fleet.url: expected an address such as postgresql://
  fleet | heartbeatSeconds: 5 | fleet.heartbeatSeconds: expected a whole number from 10 to 600, found a number (not shown)
  fleet | schema: Jobtail | fleet.schema: expected a name of at most 40 small letters, digits and underscores
  fleet | name: a b | fleet.name: expected a name of at most 63 letters, digits, dots, dashes and underscores
  errors | patterns: [] | errors.patterns: expected at least one pattern
  errors | patterns: ["a("] | errors.patterns[0]: expected a regular expression that is quick for any text
  errors | patterns: ['(a)\\1'] | errors.patterns[0]: expected a regular expression that is quick for any text
  watchMine | 5 | watchMine: expected a section (keys with their values), found 5 (number)
  watchMine | include: [] | watchMine.include: expected at least one pattern (watchMine: false follows none)
  watchMine | true | service.jobsUrl: expected the address of JobManagementWs, because watchMine asks it which jobs there are, found nothing
  stallAfterMinutes | 0 | stallAfterMinutes: expected a number of minutes above 0, at most 20160, found 0 (number)
  notify | - {on: [failed]} | notify[0]: expected exactly one of command, url, mail, found none of them
  notify | - {on: [failed], mail: a@example.org, command: [true]} | notify[0]: expected exactly one of command, url, mail, found command and mail
  notify | - {on: [fails], mail: a@example.org} | notify[0].on[0]: expected one of finished, failed, canceled,
  notify | - {on: [match], mail: a@example.org} | notify[0].match: expected a regular expression, for the event match
  notify | - {on: [match], match: "(a+)+b", mail: a@example.org} | notify[0].match: expected a regular expression that is quick
  notify | - {on: [failed], match: x, mail: a@example.org} | notify[0].match: expected no such key without
  notify | - {on: [failed], mail: "-oQ/tmp@x"} | notify[0].mail: expected a mail address
  notify | - {on: 5, mail: a@example.org} | notify[0].on: expected a list of events (finished, failed, canceled,
  notify | - {on: [failed], mail: a@x, secretFile: k} | notify[0].secretFile: expected no such key without url
  notify | - {on: [failed], url: "ftp://example.org"} | notify[0].url: expected an address that starts with http
  logging | level: loud | logging.level: expected one of silent, error, warn, info, debug, trace, found "loud" (text)
  metrics | listen: 9464 | metrics.listen: expected an address and a port such as 127.0.0.1:9464, found 9464 (number)
  view | publicUrl: https://gateway.example.org/?jobs | view.publicUrl: expected an address such as https://gateway.example.org/jobs/, without a query or a password, found "https://gateway.example.org/?jobs" (text)
  errors | patterns: [${Array.from({ length: 101 }, () => 'x')}] | errors.patterns: expected at most 100 patterns
  view | token: x | view.token: expected no secret in this file
  service | fileTransferUrl: xhttp://m/ | service.fileTransferUrl: expected an address that starts with http://
  service | fileTransferUrl: http://m/#x | service.fileTransferUrl: expected an address that starts with http://
  service | fileTransferUrl: "http://m/a b" | service.fileTransferUrl: expected an address that starts with http://
  service | fileTransferUrl: http://:hunter2@m/ | service.fileTransferUrl: expected an address that starts with http://
  service | fileTransferUrl: http://alice@m/ | service.fileTransferUrl: expected an address that starts with http://
  service | path: a b | service.path: expected a path such as /heappe, found "a b" (text)
  auth | passwordCredential: a/b | auth.passwordCredential: expected the name of a systemd credential
  auth | passwordCredential: .. | auth.passwordCredential: expected the name of a systemd credential
  auth | commandEnvironment: [GNUPG-HOME] | auth.commandEnvironment[0]: expected the name of a variable, found "GNUPG-HOME" (text)
  auth | commandEnvironment: [1A] | auth.commandEnvironment[0]: expected the name of a variable, found "1A" (text)
  auth | passwordCommand: [pass, 5] | auth.passwordCommand[1]: expected a text (put it in quotes), found a number (not shown)
  mirror | minFreeBytes: x5 MiB | mirror.minFreeBytes: expected a number of bytes from 0
  mirror | minFreeBytes: 5 MiB/s | mirror.minFreeBytes: expected a number of bytes from 0
  mirror | directory: "~" | mirror.directory: expected a path (written in full: ~ is not expanded), found "~" (text)
  api | controlGroup: wheel! | api.controlGroup: expected the name or the number of a group, found "wheel!" (text)
  results | ssh: {pinnedKeys: ["my ssh-ed25519 AAAAB3"]} | results.ssh.pinnedKeys[0]: expected a public key such as
  results | ssh: {pinnedKeys: ["ssh-ed25519 AAAAB3-"]} | results.ssh.pinnedKeys[0]: expected a public key such as
  results | include: ["a/./b"] | results.include[0]: expected a pattern that a path can match
  results | include: ["a//b"] | results.include[0]: expected a pattern that a path can match
  results | include: ["#a"] | results.include[0]: expected a pattern that a path can match
  fleet | url: xpostgres://db/x | fleet.url: expected an address such as postgresql://
  fleet | url: postgres://db/x#y | fleet.url: expected an address such as postgresql://
  errors | patterns: ['a\_'] | errors.patterns[0]: expected a regular expression that is quick for any text
  watch | - {job: 1, tasks: [], results: false} | watch[0].tasks: expected at least one task id
  errors | patterns: ['(?<a>x)'] | errors.patterns[0]: expected a regular expression that is quick for any text
  notify | - {on: [failed], mail: a@example.org x} | notify[0].mail: expected a mail address
  notify | - {on: [failed], mail: a@x, commandEnvironment: [A]} | notify[0].commandEnvironment: expected no such key without command
  notify | - {on: [failed], mail: a@x, proxy: none} | notify[0].proxy: expected no such key without url
  metrics | listen: a 127.0.0.1:9464 | metrics.listen: expected an address and a port such as 127.0.0.1:9464
  metrics | listen: 127.0.0.1:9464/ | metrics.listen: expected an address and a port such as 127.0.0.1:9464
  metrics | listen: 127.0.0.1:65536 | metrics.listen: expected an address and a port such as 127.0.0.1:9464
`;

const UNKNOWN_KEYS = String.raw`
  service | fileTransferURL: x | service.fileTransferURL: unknown key, did you mean fileTransferUrl?
  auth | pasword_file: x | auth.pasword_file: unknown key, did you mean passwordFile?
  auth | paswrd_fil: x | auth.paswrd_fil: unknown key, did you mean passwordFile?
  poll | OVERLAP: 5 | poll.OVERLAP: unknown key, did you mean overlapBytes?
  notify | - {only: [failed]} | notify[0].only: unknown key, expected one of
  pol | minIntervalSeconds: 5 | pol: unknown key, did you mean poll?
  colours | x: 5 | colours: unknown key, expected one of service, auth, mirror, state, poll, results, watch, watchMine, errors, notify, stallAfterMinutes, retention, fleet, logging, metrics, view
  watch | - {job: 1, task: [2]} | watch[0].task: unknown key, did you mean tasks?
  mirror | __proto__: {directory: x} | mirror.__proto__: unknown key
  mirror | constructor: x | mirror.constructor: unknown key
  mirror | "a\e[31mb": x | mirror."a\u{001B}[31mb": unknown key
`;

function rowsOf(table: string): string[][] {
  return table
    .trim()
    .split('\n')
    .map((row) => row.trim().split(' | '));
}

it('a job without results may be followed with some tasks, or all', async () => {
  const { watch } = await load(`${MINIMAL}watch: [{job: 1, results: false}, {job: 2, tasks: [7], results: false}]\n`);
  expect(watch.map(({ tasks, results }) => [tasks, results])).toEqual([
    [null, false],
    [['7'], false],
  ]);
});

it.each(['a/\u0024{HOME}/m', '\u0024{HOME}', '~/m'])(
  'the directory %s, which a shell would expand, is refused',
  async (directory) => {
    const { message } = await refusal(`${MINIMAL}mirror: {directory: "${directory}"}\n`);
    expect(message).toContain('mirror.directory: expected a path (written in full: ');
  },
);

describe('a wrong value', () => {
  it.each(rowsOf(WRONG_VALUES))('%s: %s', async (sectionName = '', line = '', said = '') => {
    const { code, message } = await refusal(withLine(sectionName, line));
    expect(code).toBe('config');
    expect(message).toContain(said);
    if (/, found \d+$/.test(said)) expect(`${message}\n`).toContain(`${said}\n`);
    expect(message).toMatch(/^\/.*\.yaml:\d+:\d+: /);
    expect(message).not.toMatch(/hunter2|271828/);
  });
});

/** Of numbers: the smallest, the largest, and the step beyond them. Of texts: their greatest length. */
const SAFE = Number.MAX_SAFE_INTEGER;
const NUMBERS: Readonly<Record<string, readonly [smallest: number, largest: number, step: number]>> = {
  'service.concurrency': [1, 1000, 1],
  'service.requestsPerMinute': [1, 1_000_000, 1],
  'service.timeoutSeconds': [0.001, 86_400, 0.0005],
  'auth.commandTimeoutSeconds': [0.001, 3_600, 0.0005],
  'mirror.keepGenerations': [0, 1_000, 1],
  'mirror.minFreeBytes': [0, SAFE, 1],
  'poll.minIntervalSeconds': [0.001, 86_400, 0.0005],
  'poll.maxIntervalSeconds': [0.001, 86_400, 0.0005],
  'poll.overlapBytes': [4, 1_020, 1],
  'results.intervalSeconds': [0.001, 86_400, 0.0005],
  'results.maxFileBytes': [1, SAFE, 1],
  'results.directAboveBytes': [0, SAFE, 1],
  'results.bandwidthLimit': [1_024, SAFE, 1],
  'watch.0.settleAfterMinutes': [1 / 60_000, 20_160, 0.00001],
  'watchMine.maxAgeDays': [1 / 86_400_000, 3_650, 1e-9],
  'watchMine.maxJobs': [1, 100_000, 1],
  stallAfterMinutes: [1 / 60_000, 20_160, 0.00001],
  'retention.settledDays': [1 / 86_400_000, 3_650, 1e-9],
  'fleet.maxJobs': [1, 100_000, 1],
  'fleet.heartbeatSeconds': [10, 600, 1],
};
const LENGTHS: Readonly<Record<string, number>> = { 'fleet.name': 63, 'fleet.schema': 40, 'api.controlGroup': 64 };
const PATHS: Readonly<Record<string, number>> = { 'api.directory': 80, 'view.listen': 90 };

it('every limit of a number and of a length is where it is', async () => {
  const base: object = {
    service: {
      protocol: 'soap',
      fileTransferUrl: 'http://m/',
      namespace: 'urn:x',
      baseUrl: 'http://m',
      jobsUrl: 'http://m/',
    },
    auth: { username: 'alice', passwordFile: 'password' },
    watch: [{ job: 1 }],
  };
  const put = (into: object, name: string, value: unknown): object => {
    const [first = '', ...rest] = name.split('.');
    const inner = (into as Record<string, object>)[first] ?? {};
    const part = rest.length === 0 ? value : put(inner, rest.join('.'), value);
    return Array.isArray(into) ? into.with(Number(first), part) : { ...into, [first]: part };
  };
  const withFleet = { ...base, fleet: { urlFile: 'db' } };
  const around = (name: string): object => (name.startsWith('fleet') ? withFleet : base);
  const all = (values: readonly (readonly [string, unknown])[]) =>
    load(JSON.stringify(values.reduce((into, [name, value]) => put(into, name, value), around('fleet'))));
  await all(Object.entries(NUMBERS).map(([name, [smallest]]) => [name, smallest]));
  await all(Object.entries(NUMBERS).map(([name, [, largest]]) => [name, largest]));
  await all(Object.entries(LENGTHS).map(([name, length]) => [name, 'a'.repeat(length)]));
  const path = (length: number) => `/${'a'.repeat(length - 1)}`;
  await load(
    JSON.stringify(Object.entries(PATHS).reduce((into, [name, length]) => put(into, name, path(length)), base)),
  );
  const beyond = [
    ...Object.entries(NUMBERS).flatMap(([name, [smallest, largest, step]]) => [
      [name, smallest - step] as const,
      [name, largest + step] as const,
    ]),
    ...Object.entries(LENGTHS).map(([name, length]) => [name, 'a'.repeat(length + 1)] as const),
    ...Object.entries(PATHS).map(([name, length]) => [name, path(length + 1)] as const),
  ];
  for (const [name, value] of beyond) {
    const { message } = await refusal(JSON.stringify(put(around(name), name, value)));
    expect(message, `${name} ${value}`).toContain(`${name.replace('.0', '[0]')}: expected`);
  }
});

it.each(['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify'])(
  'a fleet may reach its database with sslmode=%s',
  async (mode) => {
    const url = `postgresql://db.example.org/jobtail?sslmode=${mode}`;
    expect((await load(`${MINIMAL}fleet: {url: "${url}"}\n`)).fleet?.url).toBe(url);
  },
);

it('a directory for sockets, which a fleet does not have', async () => {
  const { message } = await refusal(`${MINIMAL}api: {directory: /run/x}\nfleet: {urlFile: x}\n`);
  expect(message).toContain('api.directory: expected none, because a fleet has no sockets');
});

describe('an unknown key', () => {
  it.each(rowsOf(UNKNOWN_KEYS))('%s: %s', async (sectionName = '', line = '', said = '') => {
    expect((await refusal(withLine(sectionName, line))).message).toContain(said);
  });
});

describe('a secret in the file', () => {
  it.each([
    ['auth', 'password: hunter2', 'auth.password'],
    ['auth', 'access_token: {x: hunter2}', 'auth.access_token'],
    ['auth', 'sessionCode: hunter2', 'auth.sessionCode'],
    ['service', 'password: hunter2', 'service.password'],
    ['credentials', 'x: hunter2', 'credentials'],
    ['auth', '"password:hunter2": null', 'auth."password..."'],
  ])('%s: %s', async (sectionName, line, key) => {
    const { message, hint } = await refusal(withLine(sectionName, line));
    expect(message).toContain(`${key}: `);
    if (!key.includes('...')) expect(message).toContain('passwordFile, tokenFile or sessionCodeFile');
    expect(`${message}${hint}`).not.toContain('hunter2');
  });

  it.each(['auth: hunter2', 'hunter2', '[hunter2]', 'password: hunter2', 'passwordFile:hunter2'])(
    '%s',
    async (yaml) => {
      expect((await refusal(yaml)).message).not.toContain('hunter2');
    },
  );
});

describe('the message', () => {
  it('names every problem, each at its place', async () => {
    const { message } = await refusal(
      [
        'service:', // 1
        '  fileTransferUrl: x',
        '  soapversion: "1.2"',
        '  concurrency: 0',
        'auth:', // 5
        '  method: openid',
        '  password: hunter2',
        'poll: {minIntervalSeconds: 9, maxIntervalSeconds: 3, overlapBytes: none}',
        'watch:',
        '  - {job: 1}', // 10
        '  - {job: 1, tasks: [x]}',
        '  - {jobs: 2}',
      ].join('\n'),
    );
    const places = message.split('\n').map((line) => /^.*?\.yaml:([^ ]+): ([^ ]+):/.exec(line)?.slice(1).join(' '));
    expect(places).toEqual([
      '2:3 service.protocol',
      '2:3 service.baseUrl',
      '2:20 service.fileTransferUrl',
      '3:3 service.soapversion',
      '4:16 service.concurrency',
      '6:3 auth.username',
      '6:3 auth',
      '7:3 auth.password',
      '8:51 poll.maxIntervalSeconds',
      '8:68 poll.overlapBytes',
      '11:11 watch[1].job',
      '11:22 watch[1].tasks[0]',
      '12:5 watch[2].job',
      '12:6 watch[2].jobs',
    ]);
  });

  it('cuts a long value and keeps the terminal safe', async () => {
    const { message } = await refusal(withLine('logging', `level: "\\e[2J\\u202e${'x'.repeat(500)}"`));
    expect(message).not.toMatch(/\p{Cc}|\p{Cf}/u);
    expect(message.length).toBeLessThan(400);
  });
});

it('anything at all is a configuration or a JobtailError of the code config', async () => {
  const sectionNames = 'service auth mirror state poll results watch watchMine fleet logging metrics view'.split(' ');
  const keys = ['method', 'tls', 'job', 'tasks', 'files', 'directory', 'minIntervalSeconds', 'passwordCommand'];
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom(null, true, 0, -1, 1.5, '', 'x', 'stdout'),
      fc.array(tie('tree'), { maxLength: 3 }),
      fc.dictionary(fc.oneof(fc.constantFrom(...sectionNames, ...keys), fc.string()), tie('tree'), { maxKeys: 4 }),
    ),
  }));
  const sections = fc.dictionary(fc.constantFrom(...sectionNames), tree, { maxKeys: 11 });
  await fc.assert(
    fc.asyncProperty(fc.oneof(sections, tree), async (value) => {
      expect((await refusal(JSON.stringify(value))).code).toBe('config');
    }),
    numRuns(100),
  );
});
