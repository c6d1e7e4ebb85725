/** All that commands print of one state in which everything has happened, as people see it. */
import { once } from 'node:events';
import fs from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, expect, it, onTestFinished, vi } from 'vitest';
import { execute } from '../../src/cli/execute.ts';
import { loadConfig } from '../../src/config/load.ts';
import { openSharedStore } from '../../src/daemon/state.ts';
import { FileWatch } from '../../src/daemon/watch-files.ts';
import type { JobId } from '../../src/job.ts';
import type { JobRow, ResultSyncRow, StoredError } from '../../src/store/rows.ts';
import { WAKE_FILE } from '../../src/store/store.ts';
import { startAgent } from '../support/composed-agent.ts';
import { taskOf } from '../support/e2e-job.ts';
import { Place, type Sections } from '../support/e2e-place.ts';
import { until } from '../support/e2e-until.ts';
import { ENDED, FAILING, NOW, SEARCHED, SETTLED, TASK, writeState } from '../support/full-state.ts';
import { jobOf, ModelJobService, ModelRemote, tasksOf } from '../support/model-remote.ts';
import { directoryOfFile } from '../support/temp-directory.ts';

const directory = directoryOfFile();
const withoutHosts = (text: string) => text.replaceAll(/(?:127\.0\.0\.1|localhost):\d+/g, 'HOST');
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  process.exitCode = undefined;
});

/** What a command with a configuration prints. */
async function printed(file: string, command: string, ...rest: readonly string[]): Promise<string> {
  const text = await printedBy([command, '--config', file, ...rest]);
  return text.replace(` --config ${file}`, '').replaceAll(path.dirname(file), 'DIR');
}

/** What a command line prints and its exit code; lines of the standard error begin with `!`. */
async function printedBy(args: readonly string[]): Promise<string> {
  let text = '';
  const out = vi.spyOn(process.stdout, 'write').mockImplementation((written, encoding) => {
    // Bytes that are no text are shown as such.
    const isBytes = encoding === ('latin1' as never);
    text += String(written).replaceAll(/[\u0080-\u00ff]/g, (byte) =>
      isBytes ? `\\x${byte.charCodeAt(0).toString(16)}` : byte,
    );
    return true;
  });
  const error = vi.spyOn(process.stderr, 'write').mockImplementation((written) => {
    text += String(written).replaceAll(/^(?=.)/gm, '!');
    return true;
  });
  process.exitCode = undefined;
  try {
    await execute(args);
  } finally {
    out.mockRestore();
    error.mockRestore();
  }
  const shown = text
    .replaceAll(`pid ${process.pid}`, 'pid 1')
    .replaceAll(/(?<="(?:pid|freeBytes|tookMs)": )\d+/g, '1')
    .replaceAll(/(?<="id": ")[\da-f-]{36}/g, 'ID')
    .replaceAll(/\d\d:\d\d:\d\d(?=\))/g, 'TIME')
    .replaceAll(/ in [\d.]+ \w+ \([^)]*\/s\)/g, ' in TIME')
    .replaceAll(/in \d+ ms/g, 'in TIME')
    .replaceAll(/[\d.]+ [KMGT]?i?B free/g, 'SIZE free')
    // A short form of JSON.
    .replaceAll(/\n(?: {6,}(?=["{}\]])| {4}(?=[}\]]))/g, ' ');
  return `$ agent ${args.join(' ')}\n${shown}= ${process.exitCode ?? 0}\n\n`;
}

/** Those that change the state are last. */
const LINES: readonly (readonly string[])[] = [
  ['status'],
  ['status', '--all'],
  ['status', FAILING, SEARCHED],
  ['status', SETTLED, ENDED],
  ['status', '999'],
  ['status', FAILING, '--json'],
  ['status', '--watch'],
  ['results', FAILING],
  ['results', FAILING, '--json'],
  ['results', '999'],
  ['notify', '--list'],
  ['notify', '--list', '--json'],
  ['wait', SETTLED, ENDED],
  ['wait', FAILING, SETTLED, '--any'],
  ['wait', FAILING, SETTLED, '--timeout', '0.05s'],
  ['wait', SETTLED, ENDED, '--json'],
  ['tail', FAILING, SETTLED, '-n', '2'],
  ['tail', FAILING, '--file', 'stdout', '--no-prefix', '-n', '1', '--since', '1h'],
  ['tail', FAILING, '--since', '1h'],
  ['tail', FAILING, '--file', 'stderr', '--no-prefix', '--raw', '-n', 'all'],
  ['tail', '4711'],
  ['tail', SEARCHED],
  ['tail', FAILING, '--task', '9009'],
  ['tail', FAILING, SETTLED, '-f'],
  ['errors'],
  ['errors', '--json'],
  ['errors', SETTLED],
  ['errors', SETTLED, '--json'],
  ['errors', '999'],
  ['grep', '-n', '-C', '1', 'three', FAILING],
  ['grep', '-c', '-v', 'o', '--all-generations'],
  ['grep', '-h', '-m', '1', '-A', '1', '-i', 'ERROR|ONE', '--since', '1h', '--file', 'stdout'],
  ['grep', '-l', '-w', 'two'],
  ['grep', '-q', 'two'],
  ...[[], ['-l'], ['-c', '-h']].map((options) => ['grep', '-m', '0', ...options, 'two', FAILING]),
  ['grep', '('],
  ['grep'],
  ['grep', 'two', '999'],
  ['grep', 'two', FAILING, '--task', '9001', '--task', '9009'],
  ['grep', 'two', '--task', '9001', '-m', '2000', '--since', '2099-01-01'],
  ['grep', '-B', '1', '-m', '1', 't[a-z]+|older', FAILING, '--file', 'stdout', '--all-generations'],
  ['grep', '-n', '-v', '-A', '0', 'o', FAILING, '--file', 'stdout'],
  ['grep', '--json', '-v', '-C', '1', 'two|four', FAILING, '--file', 'stdout'],
  ...['-c', '-l'].map((option) => ['grep', '--json', option, 'two']),
  ['grep', '--json', '-F', '-e', 'two', '-e', 'done'],
  ['check'],
  ['notify', '--test', '--list'],
  ['view', '--nosuch'],
  ['forget', FAILING, '--yes', '--unproven', '--delete-files'],
  ['unwatch', FAILING, '--now'],
  ['unwatch', ENDED, '--now'],
  ['unwatch', '--mine'],
  ['unwatch', '--mine'],
  ['forget', '--older-than', '10m', '--dry-run'],
  ['forget', '--older-than', '10m', '--dry-run', '--unproven', '--delete-files'],
  ['forget', SETTLED, '--older-than', '100d', '--dry-run', '--unproven'],
  ['forget', SETTLED, '--dry-run'],
  ['forget', SETTLED, '--unproven'],
  ['forget'],
];

/** What is printed on a terminal of 70 columns, where `agent status --watch` is interrupted. */
async function onTerminal(file: string): Promise<string> {
  const { isTTY, columns, rows } = process.stdout;
  Object.assign(process.stdout, { isTTY: true, columns: 70, rows: 12 });
  try {
    let all = '';
    const lines: (readonly [string, ...(readonly string[])])[] = [
      ['status'],
      ['grep', '-n', 'x|t[a-z]', FAILING, ENDED],
      ['grep', '-l', 'two'],
      ['tail', FAILING, '-n', '1'],
      ['tail', ENDED, '--file', 'stdout', '-n', '1'],
      ['watch', FAILING, '--no-wait', '--task', TASK],
    ];
    for (const line of lines) all += await printed(file, ...line);
    const before = process.listenerCount('exit');
    const watching = printed(file, 'status', '--watch');
    await until('its first page', () => process.listenerCount('exit') > before || undefined);
    process.emit('SIGINT');
    return all + (await watching).replaceAll('\u001b', 'ESC');
  } finally {
    Object.assign(process.stdout, { isTTY, columns, rows });
  }
}

/** What a shell asks for: the words up to the one that is completed. */
const COMPLETED: readonly (readonly string[])[] = [
  ...[[], ['st'], ['--'], ['nosuch', ''], ['completion', '']],
  ...[
    ['tail', ''],
    ['tail', '50', '--f'],
    ['tail', '501', '--file', ''],
    ['tail', '-n', ''],
    ['forget', '501', '--older-than', '3'],
  ],
];

it('each command prints the whole of a state in which everything has happened', async () => {
  vi.spyOn(Date, 'now').mockReturnValue(NOW);
  const temporary = path.join(directory, 'temporary');
  fs.mkdirSync(temporary);
  vi.stubEnv('TMPDIR', temporary);
  // `agent check` names what is not installed.
  const programs = path.join(directory, 'programs');
  fs.mkdirSync(programs);
  for (const name of ['ssh', 'rsync']) fs.writeFileSync(path.join(programs, name), '', { mode: 0o755 });
  vi.stubEnv('PATH', `${programs}:${process.env['PATH']}`);
  vi.stubEnv('LC_ALL', 'C.UTF-8');
  const { configFile, store } = await writeState(directory);
  let all = '';
  for (const [command = '', ...rest] of LINES) all += await printed(configFile, command, ...rest);
  // It writes over no file.
  const before = fs.readFileSync(configFile, 'utf8');
  all += await printed(configFile, 'report', '--output', configFile);
  expect(fs.readFileSync(configFile, 'utf8')).toBe(before);
  // Another program cuts a mirror, and removes all.
  const live = path.join(directory, 'mirror', SETTLED, 'live');
  const lost = [
    () => fs.truncateSync(path.join(live, '9004', 'stdout.log'), 1),
    () => fs.rmSync(live, { recursive: true }),
  ];
  for (const lose of lost) {
    lose();
    for (const command of ['wait', 'tail']) all += await printed(configFile, command, SETTLED);
  }
  all += await printed(configFile, 'tail', SETTLED, '-f');
  for (const row of store.liveFiles.ofJob(SETTLED))
    store.liveFiles.save({ ...row, verified: null, unverified: 'The file was not found.' });
  all += await printed(configFile, 'forget', SETTLED, '--dry-run');
  store.capabilities.set('clock', String(-31 * 86_400_000));
  all += await printed(configFile, 'forget', '--older-than', '10m');
  const stdin = Object.assign(Readable.from(['maybe\n']), { isTTY: true });
  vi.spyOn(process, 'stdin', 'get').mockReturnValue(stdin as never);
  const declined = await printed(configFile, 'forget', SETTLED, '--unproven');
  // What moves the cursor.
  all += declined.replace(/!.*(remove 1 job)/, '!$1').replace(/(?<=\[y\/N\]).*/, '');
  // What a program may write that is no text.
  const odd = path.join(directory, 'mirror', ENDED, 'live', '9001', 'stdout.log');
  fs.mkdirSync(path.dirname(odd), { recursive: true });
  fs.writeFileSync(odd, Buffer.from('10 %\r\xff\xfe\tx\r\nh\xe9', 'latin1'));
  for (const options of [[], ['--raw']]) all += await printed(configFile, 'tail', ENDED, ...options);
  all += await printed(configFile, 'grep', '--json', 'x', ENDED);
  // Another failure, and another key for transfers.
  store.jobs.save({ ...(store.jobs.get(FAILING) as JobRow), error: null, state: 'watched' });
  for (const row of store.liveFiles.ofJob(FAILING)) {
    const error: StoredError = {
      code: 'local-io',
      message: `${row.file} is a link`,
      hint: 'remove it',
      since: NOW - 1,
    };
    store.liveFiles.save({ ...row, error, position: 20 });
  }
  const sync = store.resultSyncs.get(FAILING) as ResultSyncRow;
  store.resultSyncs.save({ ...sync, endedAt: null, way: 'soap', fallback: null });
  store.leases.lose(store.leases.ask(FAILING, NOW - 60_000), 'no answer');
  store.results.saveAll([...store.results.ofJob(FAILING)].map((row) => ({ ...row, state: 'synced', reason: null })));
  all += await printed(configFile, 'status');
  all += await printed(configFile, 'status', FAILING);
  store.jobs.setState(FAILING, 'ending');
  all += await printed(configFile, 'forget', FAILING);
  store.jobs.setState(FAILING, 'ended');
  all += await printed(configFile, 'wait', FAILING);
  store.jobs.setState(FAILING, 'watched');
  // A last line without an end, wider than the terminal.
  fs.appendFileSync(odd, `${'-'.repeat(80)}end`);
  all += await onTerminal(configFile);
  vi.stubEnv('AGENT_CONFIG', configFile);
  for (const words of COMPLETED) all += await printedBy(['__complete', ...words]);
  // The configuration of the line counts, wherever it stands.
  vi.stubEnv('AGENT_CONFIG', '/none.yaml');
  const ofLine = [
    ['-c', configFile, 'st'],
    ['--config', configFile, 'tail', '50'],
    ['tail', '-c', configFile, ''],
    ['tail', '-c', ''],
  ];
  for (const words of ofLine) all += (await printedBy(['__complete', ...words])).replaceAll(directory, 'DIR');
  await expect(all).toMatchFileSnapshot('printed.txt');
  expect(fs.readdirSync(temporary)).toEqual([]);
});

it('each command that an agent works for prints what the agent did', async () => {
  const [remote, service] = [new ModelRemote(), new ModelJobService()];
  remote.files.set('9001/stdout', Buffer.from('one\ntwo\n'));
  service.set(jobOf('501', 'Running', { tasks: tasksOf('9001') }));
  service.set(jobOf('502', 'Queued', { name: 'another' }));
  const { agent, store, mirrorDirectory } = await startAgent(remote, {
    jobService: service,
    sections: 'poll: {minIntervalSeconds: 0.1, maxIntervalSeconds: 0.2}\nresults: {intervalSeconds: 600}\n',
  });
  const wakes = new FileWatch();
  wakes.watch(new Map([[path.join(store.directory, WAKE_FILE), () => agent.refresh()]]));
  onTestFinished(() => wakes.close());
  const ofAgent = path.join(path.dirname(mirrorDirectory), 'config.yaml');
  const file = path.join(path.dirname(mirrorDirectory), 'with-jobs.yaml');
  const jobsUrl = '\n  jobsUrl: "https://m.example.org/JobManagementWs"\nauth:';
  // The target works once the gate is there.
  const gate = path.join(path.dirname(file), 'gate');
  const rule = JSON.stringify({ on: ['failed'], command: ['sh', '-c', '[ -e "$0" ] && cat >> "$0"', gate] });
  const text = fs.readFileSync(ofAgent, 'utf8').replace('\nauth:', jobsUrl);
  fs.writeFileSync(file, `${text}\nnotify: [${rule}]\n`, { mode: 0o600 });
  let all = '';
  const run = async (command: string, ...rest: readonly string[]) => (all += await printed(file, command, ...rest));
  await run('notify', '--test');
  await run('notify', '--test', '--json');
  fs.writeFileSync(gate, '');
  await run('notify', '--test');
  expect(JSON.parse(fs.readFileSync(gate, 'utf8'))).toMatchObject({ type: 'test', count: 1 });
  all += await printed(ofAgent, 'jobs');
  for (const option of ['--test', '--list']) all += await printed(ofAgent, 'notify', option);
  await run('jobs');
  await run('jobs', '--json');
  await run('watch', '999');
  await run('watch', FAILING, '--lines', '3');
  await run('watch', FAILING, '--task', '9009');
  await run('wait', '999', '--timeout', '0.05s');
  await run('watch', FAILING, '--file', 'stdout', '--no-results', '--task', TASK, '--stall-after', '8.2m');
  expect(store.jobs.get(FAILING)).toMatchObject({ results: false, stallAfterMs: 492_000, settleAfterMs: null });
  expect(store.liveFiles.ofJob(FAILING).map(({ file }) => file)).toEqual(['stdout']);
  await until('its lines', () => store.liveFiles.ofJob(FAILING)[0]?.position === 8);
  await run('sync', FAILING);
  await run('verify', FAILING);
  await run('verify', FAILING, '--json');
  remote.files.set('9001/new', Buffer.from('x'));
  await run('verify', '999', FAILING);
  await run('watch', FAILING, '--file', 'stdout');
  await until('its result', () => store.results.counts(FAILING).synced === 2);
  remote.files.set('9001/../evil', Buffer.from('x'));
  remote.files.set('9001/new', Buffer.from('changed'));
  for (const jobs of [[FAILING], ['999', FAILING]]) await run('sync', ...jobs);
  remote.files.delete('9001/../evil');
  await run('sync', FAILING, '--json');
  await run('watch', FAILING, '--file', 'stdout', '--json', '--no-results');
  remote.files.delete('9001/new');
  await run('watch', '--mine', '--include', 'none-*', '--exclude', 'x*', '--max-age', '8.2m', '--max-jobs', '7');
  const mine = { include: ['none-*'], exclude: ['x*'], maxAgeMs: 492_000, maxJobs: 7 };
  expect(store.watchMine.of('command')).toMatchObject(mine);
  await run('unwatch', '--mine');
  remote.rawAccess = false;
  await run('unwatch', FAILING);
  remote.rawAccess = true;
  await run('forget', '999', '--yes');
  await run('forget', FAILING, '--yes', '--unproven', '--delete-files');
  expect(fs.existsSync(path.join(mirrorDirectory, FAILING))).toBe(false);
  store.jobs.watch(
    { jobId: '503' as JobId, tasks: [], files: [], results: false, settleAfterMs: null, source: 'command' },
    0,
  );
  await run('verify', '503');
  all += await printed(ofAgent, 'wait', '777');
  expect(store.requests.open('service')).toEqual([]);
  await expect(all).toMatchFileSnapshot('printed-by-agent.txt');
});

it('each command prints what it does where no agent runs', async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  const first = await sandbox.submit({ tasks: [{}] });
  const second = await sandbox.submit({ tasks: [{}] });
  const third = await sandbox.submit({ tasks: [{}] });
  fs.writeFileSync(taskOf(first).files.stdout, 'one\ntwo\n');
  const configure = (jobsUrl: string | null, sections: Sections = {}) =>
    place.configure(sandbox, { service: { jobsUrl }, ...sections });
  let all = '';
  const run = async (command: string, ...line: readonly string[]) =>
    (all += await printed(place.configFile, command, ...line));
  /** Ended by Ctrl-C once it has written these words. */
  const interrupted = async (words: string, command: string, ...line: readonly string[]) => {
    const running = run(command, ...line);
    const { calls } = vi.mocked(process.stderr.write).mock;
    await until(words, () => calls.some(([text]) => String(text).includes(words)) || undefined);
    process.emit('SIGINT', 'SIGINT');
    await running;
  };
  vi.spyOn(process, 'chdir').mockReturnValue();
  configure(null);
  for (const line of [[], ['--all'], [second.jobId]]) await run('status', ...line);
  await run('watch', second.jobId);
  await run('wait', second.jobId);
  configure(sandbox.jobsUrl, { watchMine: { include: ['none-*'] }, watch: [{ job: Number(third.jobId) }] });
  await run('watch', first.jobId, '--task', taskOf(first).taskId, '--file', 'stdout', '--file', 'log');
  await run('watch', first.jobId, '--quiet');
  await run('watch', first.jobId, '--json', '--no-results');
  for (const line of [[], [second.jobId]]) await run('status', ...line);
  await run('jobs');
  await interrupted('start one to get new lines', 'tail', first.jobId, '-f');
  await run('sync', first.jobId);
  await run('tail', first.jobId);
  for (const text of ['one\ntwo\nthree\n', 'one\ntwO\n']) {
    fs.writeFileSync(taskOf(first).files.stdout, text);
    await run('verify', first.jobId);
  }
  await run('watch', '--mine', '--max-jobs', '1');
  await run('watch', '--mine', '--exclude', '*', '--max-age', '2d');
  const store = openSharedStore(await loadConfig(place.configFile));
  store.jobs.watch(
    { jobId: '601' as JobId, tasks: [], files: [], results: true, settleAfterMs: null, source: 'mine' },
    1,
  );
  store.close();
  for (let times = 0; times < 2; times++) await run('unwatch', '--mine');
  await run('unwatch', first.jobId);
  await run('unwatch', first.jobId, '--now');
  await run('unwatch', '4711');
  await run('sync', third.jobId);
  for (const line of [[], ['--unproven', '--delete-files', '--yes']]) await run('forget', first.jobId, ...line);
  await run('results', second.jobId);
  await run('notify', '--list');
  await interrupted('served until', 'view', '--no-open');
  // Without a job of the configuration, that of the state is asked for.
  vi.stubEnv('LC_ALL', 'C.UTF-8');
  configure(null, { results: { transfer: 'service' } });
  await run('check');
  await run('check', '--task', '9');
  let shown = withoutHosts(all)
    .replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/g, 'TIME')
    .replaceAll(/(?<=\?ticket=)\S+/g, 'TICKET');
  for (const [index, job] of [first, second, third].entries())
    shown = shown.replaceAll(job.jobId, `JOB-${index + 1}`).replaceAll(taskOf(job).taskId, `TASK-${index + 1}`);
  await expect(shown).toMatchFileSnapshot('printed-alone.txt');
});

/** Each is wrong, or asks for help. */
const WRONG: readonly (readonly string[])[] = [
  ...[[], ['statsu'], ['status', '--jsno'], ['help', 'statsu'], ['-c', 'x', 'statsu', '-h'], ['help', 'nosuch']],
  ...[
    ['-c', 'x'],
    ['-c'],
    ['--config'],
    ['completion', 'tcsh'],
    ['run', '--log-level', 'loud'],
    ['grep', 'x', 'nojob'],
    ['tail', 'abc'],
    ['unwatch', '501', '502', '--mine'],
    ['unwatch'],
  ],
  ...[
    ['tail', '501', '-n', 'x'],
    ['demo', '--seconds', '9000'],
    ['wait', '501', '--timeout', '30'],
  ],
  ...[
    ['tail', '501', '--since', '30'],
    ['version', '-q'],
    ['check', '-q', '-c', '/none.yaml'],
    ['tail', '501', '--task', 'x'],
    ['tail', '501', '--file', 'out'],
    ['tail', '501', '--since', 'soon'],
    ['wait', '501', '--timeout', '5w'],
    ['watch', '--mine', '--max-jobs', '0'],
    ['watch', '--mine', '--include', '**/a/**/b/**/c'],
    ['init', '--project-id', 'x'],
    ['grep', 'x', '-C', '1001'],
    ['sandbox', '--port', '65536'],
  ],
  ...['.x', '../x', 'a/b', 'a b', 'x'.repeat(65)].map((name) => ['init', '--service', name]),
  ['init', '--url', 'x', '--method', 'password', '--output', '/none/config.yaml'],
  ...['--json', '--quiet'].map((option) => ['watch', '--mine', option]),
  ...['--json', '--quiet', '--no-wait'].map((option) => ['watch', '501', '--foreground', option]),
  // Before the command and after it.
  ['--config', '/none.yaml', '--no-color', 'grep', '-c', 'x'],
  ...[['status', '-c', '/none.yaml', '--no-color'], ['status'], ['help', 'status']],
];

it('each wrong command line prints what is wrong with it, once, and what was meant', async () => {
  vi.stubEnv('LC_ALL', 'C.UTF-8');
  vi.stubEnv('XDG_CONFIG_HOME', '/none');
  vi.stubEnv('AGENT_CONFIG', undefined);
  let all = '';
  for (const line of WRONG) all += await printedBy(line);
  await expect(all).toMatchFileSnapshot('printed-wrong.txt');
  for (const args of [['status', 'a\u001b]52;c;x\u0007'], ['a\u001b[2J\u009b']])
    expect((await printedBy(args)).split('\n')[1]).toMatch(/^!agent: [ -~]+$/);
});

it('agent version prints the version of each part of the program', async () => {
  const text = await printedBy(['version']);
  // The last two are optional.
  const shown = text.replaceAll(/\d+(?:\.\d+)+|\(\w+-.*\)|(?<=^(?:unix-dgram|pg) ).*/gm, 'V');
  const parts = ['jobtail', 'Node.js V', 'SQLite', 'better-sqlite3', 'unix-dgram', 'pg'];
  expect(shown).toBe(`$ agent version\n${parts.map((part) => `${part} V\n`).join('')}= 0\n\n`);
  const json = (await printedBy(['version', '--json'])).replaceAll(/^[$=].*/gm, '');
  expect(JSON.parse(json)).toMatchObject({
    program: { name: 'jobtail', file: fs.realpathSync(process.argv[1] ?? '') },
    node: { version: process.versions.node, file: process.execPath },
    platform: { system: process.platform, architecture: process.arch },
    modules: { 'better-sqlite3': { isNative: true, error: null }, pg: { isNative: false } },
  });
});

it.each([
  ['', 'Usage: agent'],
  ['results', '\nThe page of the documents: agent help results.md\n'],
  ['json', '# Output for programs'],
  ['view.md', '# The view in a browser'],
])('agent help %s prints a page of commands, or one of the documents, within 80 columns', async (name, words) => {
  vi.stubEnv('COLUMNS', '80');
  const text = await printedBy(['help', name].filter((word) => word !== ''));
  expect(text).toContain(words);
  expect(text).toMatch(/\n= 0\n\n$/);
  // Only the list of the pages, and a long word.
  expect(text.split('\n').filter((line) => /^(?!\().{81}/.test(line) && /\S /.test(line))).toEqual([]);
});

it('agent check prints what it detects of a service, what is wrong, and what to do', async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  await sandbox.setHabits({ offsetEcho: 'nil', listForm: 'bare' });
  const programs = path.join(place.directory, 'cluster', 'programs');
  fs.mkdirSync(programs);
  for (const name of ['ssh', 'rsync']) fs.writeFileSync(path.join(programs, name), '', { mode: 0o755 });
  vi.stubEnv('PATH', `${programs}:${process.env['PATH']}`);
  vi.stubEnv('LC_ALL', 'C.UTF-8');
  const wrong = path.join(place.directory, 'cluster', 'wrong');
  fs.writeFileSync(wrong, 'wrong\n', { mode: 0o644 });
  const elsewhere = sandbox.baseUrl.replace('http:', 'https:');
  let all = '';
  const run = async (service: object, sections: Sections = {}, ...line: readonly string[]) => {
    place.configure({ ...sandbox, ...service }, sections);
    all += await printed(place.configFile, 'check', ...line);
  };
  await run({}, { service: { jobsUrl: sandbox.jobsUrl } });
  const job = await sandbox.submit({ tasks: [{}] });
  const { taskId, files } = taskOf(job);
  fs.writeFileSync(files.stdout, 'hello\n');
  await run({}, {}, '--job', job.jobId, '--task', taskId);
  expect(fs.readdirSync(place.directory).sort(), 'it changes nothing').toEqual(['cluster', 'config.yaml']);
  await run({}, { pool: {} });
  await run({ passwordFile: wrong });
  fs.chmodSync(wrong, 0o640);
  const view = { listen: new URL(sandbox.baseUrl).host };
  await run({ passwordFile: wrong }, { results: { transfer: 'soap' }, view });
  fs.chmodSync(wrong, 0o644);
  // Directories of the system may stand there by mistake.
  fs.chmodSync(programs, 0o755);
  await run({ passwordFile: programs }, { state: { directory: programs } });
  const secretFile = path.join(place.directory, 'no-key');
  await run({}, { notify: [{ on: ['failed'], url: 'https://hooks.example.org', secretFile }] as never });
  await run({}, { service: { namespace: 'http://sandbox.example.org' } });
  await run({}, { service: { fileTransferUrl: `${elsewhere}/FileTransferWs` } });
  await run({}, {}, '--job', '4711');
  const { jobsUrl } = sandbox;
  const over = await sandbox.submit({ tasks: [{}] });
  await sandbox.change(over.jobId, 'fail');
  await run({}, { service: { jobsUrl }, results: { enabled: false } });
  const plain = [{ on: ['failed'], url: 'http://hooks.example.org' }];
  await run(
    {},
    {
      service: { jobsUrl },
      results: { transfer: 'direct', shareRoots: { '/scratch': '/none/scratch' } },
      notify: plain,
      view: {},
    },
  );
  const watched = { watch: [{ job: Number(job.jobId), tasks: [Number(taskId)] }], results: { transfer: 'service' } };
  await run({}, watched, '--json');
  await run({}, {}, '--probe');
  vi.stubEnv('PATH', wrong);
  await run({}, { service: { jobsUrl } }, '--job', job.jobId);
  await run({}, { results: { transfer: 'direct' } }, '--quiet');
  const rest = {
    ...sandbox.configuration('rest'),
    mirror: { directory: place.mirror },
    state: { directory: place.state },
  };
  place.writeConfig(JSON.stringify(rest));
  all += (await printed(place.configFile, 'check')) + (await printed(place.configFile, 'check', '--probe'));
  const auth = { method: 'api-key', username: 'alice', passwordFile: wrong };
  place.writeConfig(JSON.stringify({ ...rest, auth }));
  all += await printed(place.configFile, 'check');
  // Another server, which knows nothing of jobs.
  const other = createServer((_, response) => response.writeHead(404, headers).end());
  let headers: Record<string, string> = {};
  other.listen(0, '127.0.0.1');
  await once(other, 'listening');
  onTestFinished(() => void other.close());
  const port = (other.address() as AddressInfo).port;
  const at = (ms: number) => ({ date: new Date(Date.now() + ms).toUTCString() });
  for (const date of [at(-600_000), at(600_000), { date: '?' }]) {
    headers = date;
    await run({ baseUrl: `http://localhost:${port}` });
  }
  await run({}, { service: { proxy: `http://127.0.0.1:${port}` } });
  await sandbox.stop();
  await run({});
  place.configure({ ...sandbox, baseUrl: 'http://middleware.invalid' });
  // How its name is not found depends on the machine.
  all += (await printed(place.configFile, 'check')).match(/^.*not encrypted.*\n.*\n/m)?.[0];
  const shown = withoutHosts(all)
    .replaceAll(over.jobId, 'OVER')
    .replaceAll(job.jobId, 'JOB')
    .replaceAll(taskId, 'TASK')
    .replaceAll(/aheadMs=\d+|\d+ s (?=behind|ahead)/g, 'SO MUCH ')
    .replaceAll(/(?<=does not speak TLS )\(.*\)/g, '(WHY)');
  await expect(shown).toMatchFileSnapshot('printed-check.txt');
});
