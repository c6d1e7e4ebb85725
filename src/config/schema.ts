/** The schema of the configuration file, which config.example.yaml explains. Unknown keys are errors. */
import { hostname } from 'node:os';
import { API_KEY, AUTH_METHODS } from '../auth.ts';
import { LIVE_FILE_NAMES, parseJobId, parseTaskId } from '../job.ts';
import { EVENT_TYPES } from '../notification.ts';
import { isQuickPattern } from '../quick-pattern.ts';
import { reasonAgainstRoot } from '../share-root.ts';
import { isNotEmpty, listOf, type Output, oneOf, section } from '../value-type.ts';
import { authSection, isQuickExpression, QUICK_EXPRESSION } from './auth-schema.ts';
import { guardedPathsOf } from './secrets.ts';
import { serviceSection, signInOf } from './service-schema.ts';
import {
  command,
  credentialName,
  duration,
  hostAndPort,
  httpUrl,
  id,
  inMs,
  orEmpty,
  orNull,
  path,
  pathPairs,
  placeToListen,
  requireOne,
  size,
  text,
  trueOrFalse,
  wholeNumber,
  withRule,
} from './values.ts';

const TRANSFER_WAYS = ['soap', 'direct', 'auto'] as const;
const HOST_KEY_CHECKS = ['accept-new', 'strict'] as const;
const LOG_LEVELS = ['silent', 'error', 'warn', 'info', 'debug', 'trace'] as const;

const DAY_SECONDS = 86_400;
// Two weeks: just below the limit of a timer in Node.js (2^31 ms).
const SETTLE_MAX_MINUTES = 20_160;
const MAX_AGE_DAYS = 3_650;

/** Relative paths start from `directory`. */
export function configSchema(directory: string) {
  const sections = section({
    service: serviceSection(directory),
    auth: authSection(directory),
    mirror: orEmpty(
      section({
        directory: path(directory).prefault('/var/lib/agent/mirror'),
        keepGenerations: wholeNumber(0, 1000).prefault(5),
        minFreeBytes: size(0, Number.MAX_SAFE_INTEGER).prefault(100 * 2 ** 20),
      }),
    ),
    state: orEmpty(section({ directory: path(directory).prefault('/var/lib/agent/state') })),
    poll: orEmpty(pollSection()),
    results: orEmpty(resultsSection(directory)),
    watch: watchList().after((found) => found ?? []),
    watchMine: watchMineSection().nullable().after(asSection),
    errors: orEmpty(section({ patterns: orNull(errorPatterns()) })),
    notify: notifyList(directory).after((found) => found ?? []),
    stallAfterMinutes: orNull(duration('minutes', SETTLE_MAX_MINUTES)),
    retention: orEmpty(retentionSection()),
    fleet: orNull(fleetSection(directory)),
    logging: orEmpty(section({ level: oneOf(LOG_LEVELS).prefault('info') })),
    metrics: orEmpty(section({ listen: orNull(hostAndPort()) })),
    view: viewSection(directory).nullable().after(asSection),
  });
  return withRule(sections, ({ service, auth, watchMine }, report) => {
    const isSoap = service?.protocol === 'soap';
    if (service?.baseUrl === null && (auth?.method ?? 'session-code') !== 'session-code')
      report('the address of the sign-in, which starts with http:// or https://', ['service', 'baseUrl']);
    if (isSoap && auth?.method === API_KEY) {
      const methods = AUTH_METHODS.join(', ');
      const expected = `a method that SOAP has (${methods}), because ${API_KEY} is one of the protocol rest`;
      report(expected, ['auth', 'method']);
    }
    if (isSoap && watchMine && service.jobsUrl === null)
      report('the address of JobManagementWs, because watchMine asks it which jobs there are', ['service', 'jobsUrl']);
  }).transform((config, issues) => {
    const guarded = guardedPathsOf(config);
    for (const [there, root] of Object.entries(config.results.shareRoots)) {
      const reason = reasonAgainstRoot(root, guarded);
      if (reason === undefined) continue;
      const expected = `a directory with files of the cluster and nothing else (${reason})`;
      issues.push({ path: ['results', 'shareRoots', there], expected, found: root });
    }
    return inMs({ ...config, auth: signInOf(config) });
  });
}

function pollSection() {
  const keys = section({
    minIntervalSeconds: duration('seconds', DAY_SECONDS).prefault(2),
    maxIntervalSeconds: duration('seconds', DAY_SECONDS).prefault(60),
    overlapBytes: size(4, 2 ** 20).prefault(256),
  });
  return withRule(keys, ({ minIntervalSeconds: minMs = 0, maxIntervalSeconds: maxMs = minMs }, report) => {
    const expected = `a number of seconds that is not below minIntervalSeconds (${minMs / 1000})`;
    if (minMs > maxMs) report(expected, ['maxIntervalSeconds'], maxMs / 1000);
  }).transform(inMs);
}

function resultsSection(directory: string) {
  return section({
    enabled: trueOrFalse().prefault(true),
    intervalSeconds: duration('seconds', DAY_SECONDS).prefault(60),
    include: globs(isOfPath)
      .refine(isNotEmpty, 'at least one pattern (enabled: false turns results off)')
      .refine((patterns) => !patterns.every((pattern) => pattern.startsWith('!')), 'a pattern without ! before it')
      .prefault(['**']),
    exclude: globs(isOfPath).prefault([]),
    maxFileBytes: orNull(size(1, Number.MAX_SAFE_INTEGER)),
    transfer: oneOf(TRANSFER_WAYS).prefault('auto'),
    directAboveBytes: size(0, Number.MAX_SAFE_INTEGER).prefault(64 * 2 ** 20),
    bandwidthLimit: orNull(size(1024, Number.MAX_SAFE_INTEGER)),
    shareRoots: pathPairs(directory).prefault({}),
    ssh: orEmpty(sshSection(directory)),
  }).transform(inMs);
}

/** Whether a path can match: none has such parts, and what begins with # is a comment. */
function isOfPath(pattern: string): boolean {
  const parts = pattern
    .replace(/^!?\/?/, '')
    .replace(/\/$/, '')
    .split('/');
  return !/^(?:#|\s*$)/.test(pattern) && !parts.some((part) => ['', '.', '..'].includes(part));
}

function globs(canMatch: (pattern: string) => boolean = () => true) {
  const glob = text('a pattern such as *.dat (put it in quotes)')
    .refine(isQuickPattern, 'a pattern with at most two ** before its end')
    .refine(canMatch, 'a pattern that a path can match (no empty part, no . or .., no # at its start)');
  return listOf(glob, 'patterns such as ["**"]');
}

function sshSection(directory: string) {
  const key = text('a public key such as "ssh-ed25519 AAAA..."', (found) =>
    /^(?:ssh|ecdsa|sk-ssh|sk-ecdsa)-[a-z0-9@.-]+ AAAA[A-Za-z0-9+/]+={0,2}(?: |$)/.test(found),
  );
  return section({
    hostKeys: oneOf(HOST_KEY_CHECKS).prefault('accept-new'),
    /** Null: a file in the state directory. */
    knownHostsFile: orNull(path(directory)),
    pinnedKeys: listOf(key, 'public keys such as ["ssh-ed25519 AAAA..."]').prefault([]),
  });
}

/** `true` is the rule with its defaults. */
const asSection = (found: unknown) => (found === true ? {} : found === false || found === undefined ? null : found);

const PUBLIC_URL = 'an address such as https://gateway.example.org/jobs/, without a query or a password';

function viewSection(directory: string) {
  return section({
    listen: placeToListen(directory).prefault('127.0.0.1:9470'),
    /** Null: a file in the state directory. */
    tokenFile: orNull(path(directory)),
    publicUrl: orNull(httpUrl(PUBLIC_URL).refine((url) => !url.includes('?'), PUBLIC_URL)),
  });
}

function retentionSection() {
  return section({
    settledDays: orNull(duration('days', MAX_AGE_DAYS)),
    deleteFiles: trueOrFalse().prefault(false),
  }).transform(inMs);
}

function watchMineSection() {
  return section({
    include: globs().refine(isNotEmpty, 'at least one pattern (watchMine: false follows none)').prefault(['**']),
    exclude: globs().prefault([]),
    maxAgeDays: duration('days', MAX_AGE_DAYS).prefault(1),
    maxJobs: wholeNumber(1, 100_000).prefault(200),
  }).transform(inMs);
}

function watchList() {
  return withRule(listOf(watchEntry(), 'jobs such as {job: 501, tasks: [9001]}'), (entries, report) => {
    const jobs = Array.isArray(entries) ? entries.map((entry) => entry?.job) : [];
    for (const [index, job] of jobs.entries()) {
      const first = jobs.indexOf(job);
      const isRepeated = typeof job === 'string' && first < index;
      if (isRepeated) report(`every job once (it stands in watch[${first}] already)`, [index, 'job']);
    }
  });
}

function watchEntry() {
  const keys = section({
    job: id('a job id (1 or more)', parseJobId),
    tasks: orNull(listOf(id('a task id', parseTaskId), 'task ids').transform(eachOnce)),
    files: listOf(oneOf(LIVE_FILE_NAMES), `live files (${LIVE_FILE_NAMES.join(', ')})`)
      .refine(isNotEmpty, `at least one of ${LIVE_FILE_NAMES.join(', ')} (leave the key out for all of them)`)
      .transform(eachOnce)
      .prefault([...LIVE_FILE_NAMES]),
    results: trueOrFalse().prefault(true),
    settleAfterMinutes: orNull(duration('minutes', SETTLE_MAX_MINUTES)),
  });
  const expected =
    'at least one task id, because with "results: false" there is nothing else to follow (leave the key out for all tasks)';
  return withRule(keys, ({ tasks, results }, report) => {
    if (tasks?.length === 0 && results === false) report(expected, ['tasks']);
  }).transform(inMs);
}

const MAX_ERROR_PATTERNS = 100;

/** The patterns are joined into one expression, so numbers of groups differ. */
function errorPatterns() {
  const expected = `${QUICK_EXPRESSION}, without back-references`;
  const pattern = text(expected, (found) => !/\\[1-9k]|\(\?<[^=!]/.test(found) && isQuickExpression(found, 'isu'));
  return listOf(pattern, 'regular expressions such as ["diverged", "\\\\bNaN\\\\b"]')
    .refine(isNotEmpty, 'at least one pattern (leave the key out for the usual ones)')
    .refine(({ length }) => length <= MAX_ERROR_PATTERNS, `at most ${MAX_ERROR_PATTERNS} patterns`);
}

const TARGETS = ['command', 'url', 'mail'] as const;

function notifyList(directory: string) {
  const rule = section({
    on: listOf(oneOf(EVENT_TYPES), `events (${EVENT_TYPES.join(', ')})`)
      .refine(isNotEmpty, 'at least one event')
      .transform(eachOnce),
    jobs: globs().refine(isNotEmpty, 'at least one pattern').prefault(['**']),
    files: globs().refine(isNotEmpty, 'at least one pattern').prefault(['**']),
    match: orNull(text(QUICK_EXPRESSION, isQuickExpression)),
    command: orNull(command(directory)),
    url: orNull(httpUrl()),
    secretFile: orNull(path(directory)),
    /** Null: that of the service, but none to this machine. */
    proxy: orNull(text('an address such as http://proxy.example.org:3128, or none', isProxyOrNone)),
    /** Besides the roots of Node.js and `service.tls.caFile`. */
    caFile: orNull(path(directory)),
    mail: orNull(text('a mail address', (found) => /^[\w.+][^\s<>,;:"()[\]\\]*@[\w.-]+$/.test(found))),
  });
  const checked = withRule(rule, (keys, report) => {
    const given = TARGETS.filter((key) => keys[key] != null);
    requireOne(TARGETS, given, report);
    const wantsLines = Array.isArray(keys.on) && keys.on.includes('match');
    if (wantsLines && keys.match === null) report('a regular expression, for the event match', ['match'], 'nothing');
    if (!wantsLines && keys.match != null) report('no such key without the event match', ['match']);
    for (const key of ONLY_WITH_URL)
      if (keys[key] != null && keys.url == null) report('no such key without url', [key]);
  });
  return listOf(checked, 'rules such as {on: [failed], command: [/usr/local/bin/page-me]}');
}

const isProxyOrNone = (found: string) => found === 'none' || httpUrl().valid(found) !== undefined;

const ONLY_WITH_URL = ['secretFile', 'proxy', 'caFile'] as const;

const eachOnce = <Item>(items: readonly Item[]): Item[] => [...new Set(items)];

const URL_KEYS = ['url', 'urlFile', 'urlCredential'] as const;
/** Two queries that reach their time limits must fit into a lease. */
const MIN_HEARTBEAT_SECONDS = 10;
const MAX_HEARTBEAT_SECONDS = 600;
/** The channel of notifications has a longer name, and PostgreSQL cuts names above 63 bytes. */
const MAX_SCHEMA_CHARACTERS = 40;

const EXPECTED_NAME = 'a name of at most 63 letters, digits, dots, dashes and underscores';
const nameOfHost = () =>
  hostname()
    .replaceAll(/[^\w.-]/g, '-')
    .slice(0, 63) || 'agent';

export function fleetSection(directory: string) {
  const keys = section({
    url: orNull(databaseUrl()),
    urlFile: orNull(path(directory)),
    urlCredential: orNull(credentialName()),
    name: orNull(text(EXPECTED_NAME, (found) => /^[\w.-]{1,63}$/.test(found))).transform(
      (name) => name ?? nameOfHost(),
    ),
    maxJobs: wholeNumber(1, 100_000).prefault(2000),
    heartbeatSeconds: wholeNumber(MIN_HEARTBEAT_SECONDS, MAX_HEARTBEAT_SECONDS).prefault(15),
    schema: text(`a name of at most ${MAX_SCHEMA_CHARACTERS} small letters, digits and underscores`, (found) =>
      new RegExp(`^[a-z_][a-z0-9_]{0,${MAX_SCHEMA_CHARACTERS - 1}}$`).test(found),
    ).prefault('jobtail'),
    drainOnStop: trueOrFalse().prefault(false),
    separateMirrors: trueOrFalse().prefault(false),
  });
  return withRule(keys, (found, report) => {
    const given = URL_KEYS.filter((key) => found[key] !== null);
    requireOne(URL_KEYS, given, report);
  }).transform(({ heartbeatSeconds, ...others }) => ({ ...others, heartbeatMs: heartbeatSeconds * 1000 }));
}

export type FleetSettings = Readonly<Output<ReturnType<typeof fleetSection>>>;

const TLS_MODES = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify'] as const;

/** A password in it would be a secret in the file. */
function databaseUrl() {
  const expected =
    'an address such as postgresql://jobtail@db.example.org/jobtail?sslmode=verify-full, without a password in it';
  return text(expected, isDatabaseUrl);
}

function isDatabaseUrl(text: string): boolean {
  if (/\s/.test(text) || !URL.canParse(text)) return false;
  const { protocol, password, searchParams, hash } = new URL(text);
  const mode = searchParams.get('sslmode');
  const isKnownMode = mode === null || oneOf(TLS_MODES).valid(mode) !== undefined;
  return (
    /^postgres(?:ql)?:$/.test(protocol) &&
    password === '' &&
    !searchParams.has('password') &&
    hash === '' &&
    isKnownMode
  );
}
