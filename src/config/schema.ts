/** The schema of the configuration file, which config.example.yaml explains. Unknown keys are errors. */
import { hostname } from 'node:os';
import * as v from 'valibot';
import { API_KEY, AUTH_METHODS } from '../auth.ts';
import { LIVE_FILE_NAMES, parseJobId, parseTaskId } from '../job.ts';
import { EVENT_TYPES } from '../notification.ts';
import { isQuickPattern } from '../quick-pattern.ts';
import { reasonAgainstRoot } from '../share-root.ts';
import { authSection, expression, QUICK_EXPRESSION } from './auth-schema.ts';
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
  isNotEmpty,
  issueOf,
  listOf,
  oneOf,
  orEmpty,
  orNull,
  path,
  pathPairs,
  placeToListen,
  refine,
  required,
  requireOne,
  section,
  size,
  type Type,
  text,
  transform,
  trueOrFalse,
  variableNames,
  wholeNumber,
  withRule,
} from './values.ts';

const TRANSFER_WAYS = ['service', 'direct', 'auto'] as const;
const HOST_KEY_CHECKS = ['accept-new', 'strict'] as const;
const LOG_LEVELS = ['silent', 'error', 'warn', 'info', 'debug', 'trace'] as const;

const DAY_SECONDS = 86_400;
// Two weeks: just below the limit of a timer in Node.js (2^31 ms).
const SETTLE_MAX_MINUTES = 20_160;
const MAX_AGE_DAYS = 3_650;

/** Relative paths start from `directory`. */
export function configSchema(directory: string) {
  const sections = section({
    service: required(serviceSection(directory)),
    auth: required(authSection(directory)),
    mirror: orEmpty(
      section({
        directory: v.optional(path(directory), '/var/lib/agent/mirror'),
        keepGenerations: v.optional(wholeNumber(0, 1000), 5),
        minFreeBytes: v.optional(size(0, Number.MAX_SAFE_INTEGER), 100 * 2 ** 20),
      }),
    ),
    state: orEmpty(section({ directory: v.optional(path(directory), '/var/lib/agent/state') })),
    poll: orEmpty(pollSection()),
    results: orEmpty(resultsSection(directory)),
    watch: v.nullish(watchList(), []),
    watchMine: orFalse(watchMineSection()),
    errors: orEmpty(section({ patterns: orNull(errorPatterns()) })),
    notify: v.nullish(notifyList(directory), []),
    stallAfterMinutes: orNull(duration('minutes', SETTLE_MAX_MINUTES)),
    retention: orEmpty(retentionSection()),
    fleet: orNull(fleetSection(directory)),
    logging: orEmpty(section({ level: v.optional(oneOf(LOG_LEVELS), 'info') })),
    metrics: orEmpty(section({ listen: orNull(hostAndPort()) })),
    view: orFalse(viewSection(directory)),
    api: orEmpty(section({ directory: orNull(socketDirectory(directory)), controlGroup: orNull(groupName()) })),
  });
  const checked = withRule(sections, ({ service, auth, watchMine, fleet, api }, report) => {
    const isSoap = service?.protocol === 'soap';
    const signsIn = (auth?.method ?? 'session-code') !== 'session-code';
    // REST needs it for all requests, and reports that itself.
    if (service?.baseUrl === null && service.protocol !== 'rest' && signsIn)
      report('the address of the sign-in, which starts with http:// or https://', ['service', 'baseUrl']);
    if (isSoap && auth?.method === API_KEY) {
      const methods = AUTH_METHODS.join(', ');
      const expected = `a method that SOAP has (${methods}), because ${API_KEY} is one of the protocol rest`;
      report(expected, ['auth', 'method']);
    }
    if (isSoap && watchMine && service.jobsUrl === null)
      report('the address of JobManagementWs, because watchMine asks it which jobs there are', ['service', 'jobsUrl']);
    if (fleet && api?.directory)
      report('none, because a fleet has no sockets (a program runs agent with --json)', ['api', 'directory']);
  });
  return v.pipe(
    checked,
    v.rawTransform(({ dataset: { value: config }, addIssue }) => {
      const guarded = guardedPathsOf(config);
      for (const [there, root] of Object.entries(config.results.shareRoots)) {
        const reason = reasonAgainstRoot(root, guarded);
        if (reason === undefined) continue;
        const expected = `a directory with files of the cluster and nothing else (${reason})`;
        addIssue(issueOf(expected, ['results', 'shareRoots', there], root));
      }
      const { api, state } = config;
      const sockets = { ...api, directory: api.directory ?? runtimeDirectoryOf(state.directory) };
      return inMs({ ...config, auth: signInOf(config), api: sockets });
    }),
  );
}

function pollSection() {
  const keys = section({
    minIntervalSeconds: v.optional(duration('seconds', DAY_SECONDS), 2),
    maxIntervalSeconds: v.optional(duration('seconds', DAY_SECONDS), 60),
    // Text shows no more of them: then the edge of a block may cut a character (docs/dev/servers.md 1.2).
    overlapBytes: v.optional(size(4, 1020), 256),
  });
  const checked = withRule(keys, ({ minIntervalSeconds: minMs = 0, maxIntervalSeconds: maxMs = minMs }, report) => {
    const expected = `a number of seconds that is not below minIntervalSeconds (${minMs / 1000})`;
    if (minMs > maxMs) report(expected, ['maxIntervalSeconds'], maxMs / 1000);
  });
  return transform(checked, inMs);
}

function resultsSection(directory: string) {
  const some = refine(globs(isOfPath), isNotEmpty, 'at least one pattern (enabled: false turns results off)');
  const isPositive = (patterns: string[]) => !patterns.every((pattern) => pattern.startsWith('!'));
  const keys = section({
    enabled: v.optional(trueOrFalse(), true),
    intervalSeconds: v.optional(duration('seconds', DAY_SECONDS), 60),
    include: v.optional(refine(some, isPositive, 'a pattern without ! before it'), ['**']),
    exclude: v.optional(globs(isOfPath), []),
    maxFileBytes: orNull(size(1, Number.MAX_SAFE_INTEGER)),
    transfer: v.optional(transferWay(), 'auto'),
    directAboveBytes: v.optional(size(0, Number.MAX_SAFE_INTEGER), 64 * 2 ** 20),
    bandwidthLimit: orNull(size(1024, Number.MAX_SAFE_INTEGER)),
    shareRoots: v.optional(pathPairs(directory), {}),
    ssh: orEmpty(sshSection(directory)),
  });
  return transform(keys, inMs);
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
  const written = text('a pattern such as *.dat (put it in quotes)');
  const quick = refine(written, isQuickPattern, 'a pattern with at most two ** before its end');
  const expected = 'a pattern that a path can match (no empty part, no . or .., no # at its start)';
  return listOf(refine(quick, canMatch, expected), 'patterns such as ["**"]');
}

/** The value `soap` of 0.2.0 is read as `service`; `agent check` proposes the new word. */
function transferWay() {
  const renamed = transform(v.unknown(), (found) => (found === 'soap' ? 'service' : found));
  return v.pipe(renamed, oneOf(TRANSFER_WAYS));
}

function sshSection(directory: string) {
  const key = text('a public key such as "ssh-ed25519 AAAA..."', (found) =>
    /^(?:ssh|ecdsa|sk-ssh|sk-ecdsa)-[a-z0-9@.-]+ AAAA[A-Za-z0-9+/]+={0,2}(?: |$)/.test(found),
  );
  return section({
    hostKeys: v.optional(oneOf(HOST_KEY_CHECKS), 'accept-new'),
    /** Null: a file in the state directory. */
    knownHostsFile: orNull(path(directory)),
    pinnedKeys: v.optional(listOf(key, 'public keys such as ["ssh-ed25519 AAAA..."]'), []),
  });
}

/** `true` is the section with its defaults. */
const asSection = transform(v.unknown(), (found) => (found === true ? {} : found === false ? null : found));
const orFalse = <Value>(inner: Type<Value>) => orNull(v.pipe(asSection, v.nullable(inner)));

const PUBLIC_URL = 'an address such as https://gateway.example.org/jobs/, without a query or a password';

function viewSection(directory: string) {
  return section({
    listen: v.optional(placeToListen(directory), '127.0.0.1:9470'),
    /** Null: a file in the state directory. */
    tokenFile: orNull(path(directory)),
    publicUrl: orNull(refine(httpUrl(PUBLIC_URL), (url) => !url.includes('?'), PUBLIC_URL)),
  });
}

const MAX_DIRECTORY_BYTES = 80;

function socketDirectory(directory: string) {
  const expected = `the path of a directory (at most ${MAX_DIRECTORY_BYTES} bytes, because a socket has no longer path)`;
  return refine(path(directory), (found) => Buffer.byteLength(found) <= MAX_DIRECTORY_BYTES, expected);
}

const groupName = () => text('the name or the number of a group', (found) => /^[\w][\w.-]{0,63}$/.test(found));

/** systemd makes both for a unit with `StateDirectory=NAME` and `RuntimeDirectory=NAME`. Null for other places. */
function runtimeDirectoryOf(stateDirectory: string): string | null {
  const [, name] = /^\/var\/lib\/(agent[\w.@-]*)\/state$/.exec(stateDirectory) ?? [];
  return name === undefined ? null : `/run/${name}`;
}

function retentionSection() {
  const keys = section({
    settledDays: orNull(duration('days', MAX_AGE_DAYS)),
    deleteFiles: v.optional(trueOrFalse(), false),
  });
  return transform(keys, inMs);
}

function watchMineSection() {
  const keys = section({
    include: v.optional(refine(globs(), isNotEmpty, 'at least one pattern (watchMine: false follows none)'), ['**']),
    exclude: v.optional(globs(), []),
    maxAgeDays: v.optional(duration('days', MAX_AGE_DAYS), 1),
    maxJobs: v.optional(wholeNumber(1, 100_000), 200),
  });
  return transform(keys, inMs);
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
  const names = LIVE_FILE_NAMES.join(', ');
  const files = listOf(oneOf(LIVE_FILE_NAMES), `live files (${names})`);
  const some = refine(files, isNotEmpty, `at least one of ${names} (leave the key out for all of them)`);
  const keys = section({
    job: required(id('a job id (1 or more)', parseJobId)),
    tasks: orNull(eachOnce(listOf(id('a task id', parseTaskId), 'task ids'))),
    files: v.optional(eachOnce(some), LIVE_FILE_NAMES),
    results: v.optional(trueOrFalse(), true),
    settleAfterMinutes: orNull(duration('minutes', SETTLE_MAX_MINUTES)),
  });
  const expected =
    'at least one task id, because with "results: false" there is nothing else to follow (leave the key out for all tasks)';
  const checked = withRule(keys, ({ tasks, results }, report) => {
    if (tasks?.length === 0 && results === false) report(expected, ['tasks']);
  });
  return transform(checked, inMs);
}

const MAX_ERROR_PATTERNS = 100;

/** The patterns are joined into one expression, so numbers of groups differ. */
function errorPatterns() {
  const expected = `${QUICK_EXPRESSION}, without back-references`;
  const pattern = expression(expected, 'isu', (found) => !/\\[1-9k]|\(\?<[^=!]/.test(found));
  const patterns = listOf(pattern, 'regular expressions such as ["diverged", "\\\\bNaN\\\\b"]');
  const some = refine(patterns, isNotEmpty, 'at least one pattern (leave the key out for the usual ones)');
  return refine(some, ({ length }) => length <= MAX_ERROR_PATTERNS, `at most ${MAX_ERROR_PATTERNS} patterns`);
}

const TARGETS = ['command', 'url', 'mail'] as const;

function notifyList(directory: string) {
  const events = listOf(oneOf(EVENT_TYPES), `events (${EVENT_TYPES.join(', ')})`);
  const names = v.optional(refine(globs(), isNotEmpty, 'at least one pattern'), ['**']);
  const rule = section({
    on: required(eachOnce(refine(events, isNotEmpty, 'at least one event'))),
    jobs: names,
    files: names,
    match: orNull(expression()),
    command: orNull(command(directory)),
    commandEnvironment: variableNames(),
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
    if (keys.commandEnvironment !== undefined && keys.command == null)
      report('no such key without command', ['commandEnvironment']);
    for (const key of ONLY_WITH_URL)
      if (keys[key] != null && keys.url == null) report('no such key without url', [key]);
  });
  return listOf(checked, 'rules such as {on: [failed], command: [/usr/local/bin/page-me]}');
}

const isProxyOrNone = (found: string) => found === 'none' || v.is(httpUrl(), found);

const ONLY_WITH_URL = ['secretFile', 'proxy', 'caFile'] as const;

const eachOnce = <Item>(list: Type<Item[]>) => transform(list, (items) => [...new Set(items)]);

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
  const schemaName = text(`a name of at most ${MAX_SCHEMA_CHARACTERS} small letters, digits and underscores`, (found) =>
    new RegExp(`^[a-z_][a-z0-9_]{0,${MAX_SCHEMA_CHARACTERS - 1}}$`).test(found),
  );
  const keys = section({
    url: orNull(databaseUrl()),
    urlFile: orNull(path(directory)),
    urlCredential: orNull(credentialName()),
    name: v.nullish(
      text(EXPECTED_NAME, (found) => /^[\w.-]{1,63}$/.test(found)),
      nameOfHost,
    ),
    maxJobs: v.optional(wholeNumber(1, 100_000), 2000),
    heartbeatSeconds: v.optional(wholeNumber(MIN_HEARTBEAT_SECONDS, MAX_HEARTBEAT_SECONDS), 15),
    schema: v.optional(schemaName, 'jobtail'),
    drainOnStop: v.optional(trueOrFalse(), false),
    separateMirrors: v.optional(trueOrFalse(), false),
  });
  const checked = withRule(keys, (found, report) => {
    const given = URL_KEYS.filter((key) => found[key] !== null);
    requireOne(URL_KEYS, given, report);
  });
  return transform(checked, ({ heartbeatSeconds, ...others }) => ({ ...others, heartbeatMs: heartbeatSeconds * 1000 }));
}

export type FleetSettings = Readonly<v.InferOutput<ReturnType<typeof fleetSection>>>;

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
  const isKnownMode = mode === null || v.is(oneOf(TLS_MODES), mode);
  return (
    /^postgres(?:ql)?:$/.test(protocol) &&
    password === '' &&
    !searchParams.has('password') &&
    hash === '' &&
    isKnownMode
  );
}
