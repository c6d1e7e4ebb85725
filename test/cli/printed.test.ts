/** All that commands print of one state in which everything has happened, as people see it. */
import fs from 'node:fs';
import path from 'node:path';
import { afterEach, expect, it, onTestFinished, vi } from 'vitest';
import { execute } from '../../src/cli/execute.ts';
import { loadConfig } from '../../src/config/load.ts';
import { openOwnStore } from '../../src/daemon/own-state.ts';
import { FileWatch } from '../../src/daemon/watch-files.ts';
import type { JobId, TaskId } from '../../src/job.ts';
import { jobTimeOf, type TaskInformation } from '../../src/job-information.ts';
import { newEvent } from '../../src/notify/events.ts';
import { Rule } from '../../src/notify/rules.ts';
import type { JobRow, ResultRow, TaskSearchRow, WatchRequest } from '../../src/store/rows.ts';
import { WAKE_FILE } from '../../src/store/store.ts';
import { startAgent } from '../support/composed-agent.ts';
import { SILENT } from '../support/errors.ts';
import { jobOf, ModelJobService, ModelRemote, tasksOf } from '../support/model-remote.ts';
import { directoryOfFile } from '../support/temp-directory.ts';

const NOW = Date.parse('2026-03-01T12:00:00Z');
const minutes = (count: number) => NOW - count * 60_000;
const [FAILING, SEARCHED, ENDED, SETTLED] = ['501', '502', '503', '504'] as JobId[] as [JobId, JobId, JobId, JobId];
const TASK = '9001' as TaskId;

const directory = directoryOfFile();
const configFile = path.join(directory, 'config.yaml');
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  process.exitCode = undefined;
});

/** As a running agent would have it. */
async function writeState(): Promise<void> {
  fs.writeFileSync(path.join(directory, 'password'), 'secret', { mode: 0o600 });
  const sections = {
    service: { protocol: 'rest', baseUrl: 'http://127.0.0.1:9' },
    auth: { username: 'alice', passwordFile: 'password' },
    mirror: { directory: 'mirror', minFreeBytes: 0 },
    state: { directory: 'state' },
    watch: [{ job: ENDED }],
    notify: [
      { on: ['failed', 'stalled'], mail: 'alice@example.org' },
      { on: ['finished'], url: 'https://hooks.example.org/secret' },
    ],
  };
  fs.writeFileSync(configFile, JSON.stringify(sections));
  const config = await loadConfig(configFile);
  const { store, close } = openOwnStore(config, SILENT);
  onTestFinished(close);
  const usual: Omit<WatchRequest, 'jobId'> = {
    tasks: [TASK],
    files: ['stdout', 'stderr'],
    results: true,
    settleAfterMs: null,
    source: 'command',
  };
  const error = { code: 'timeout', message: 'no answer', hint: 'look at the network', since: minutes(7) } as const;
  store.transaction(() => {
    store.jobs.watch({ ...usual, jobId: FAILING, stallAfterMs: 60_000 }, minutes(60));
    store.jobs.watch({ ...usual, jobId: SEARCHED, tasks: null, results: false }, minutes(50));
    store.jobs.watch({ ...usual, jobId: ENDED }, minutes(40));
    store.jobs.watch({ ...usual, jobId: SETTLED, tasks: ['9004' as TaskId] }, minutes(30));
    store.jobs.save({
      ...(store.jobs.get(FAILING) as JobRow),
      ...{ polledAt: minutes(2), grownAt: minutes(3), stalledAt: minutes(4), refused: 5, failures: 6 },
      error: { ...error, retryAt: NOW + 90_000 },
    });
    store.jobs.unwatch(ENDED, 'ended');
    store.jobs.setState(SETTLED, 'settled');
    for (const row of store.liveFiles.ofJob(FAILING))
      store.liveFiles.save(
        row.file === 'stdout'
          ? {
              ...row,
              position: 12_345,
              generation: 3,
              grownAt: minutes(3),
              verified: 12_345,
              mismatches: [
                { kind: 'rewritten', at: 17, reason: 'other bytes at 17', generation: 2, seenAt: minutes(9) },
              ],
            }
          : { ...row, position: 11, error: { ...error, message: 'the mirror is read-only', hint: null } },
      );
    for (const row of store.liveFiles.ofJob(SETTLED))
      store.liveFiles.save({ ...row, position: 6, verified: row.file === 'stdout' ? 6 : null, grownAt: minutes(20) });
    const [first, second] = tasksOf('9001', '9002') as [TaskInformation, TaskInformation];
    store.jobInformation.save({
      jobId: FAILING,
      information: jobOf(FAILING, 'Running', {
        name: 'heat',
        submitTime: jobTimeOf('2026-03-01T10:00:00'),
        startTime: jobTimeOf('2026-03-01T10:30:00'),
        tasks: [
          { ...second, state: 'Running', name: 'solve' },
          { ...first, state: 'Failed', errorMessage: 'out of memory' },
        ],
      }),
      ...{ since: minutes(80), reportedAt: minutes(1) },
    });
    store.jobInformation.save({
      jobId: SETTLED,
      information: jobOf(SETTLED, 'Canceled', { tasks: tasksOf('9004') }),
      since: minutes(25),
      reportedAt: minutes(25),
    });
    store.taskSearches.save({
      ...(store.taskSearches.get(SEARCHED) as TaskSearchRow),
      searchedAt: minutes(2),
      nextSearchAt: NOW + 45_000,
      hint: 'no probe found a file',
    });
    store.jobInformation.saveListing({
      requestedAt: minutes(1),
      nextRequestAt: NOW + 30_000,
      failures: 2,
      error: { ...error, message: 'the list is broken' },
      listed: 4,
      waiting: 8,
    });
    store.watchMine.save({
      source: 'command',
      since: minutes(90),
      include: ['**'],
      exclude: [],
      maxAgeMs: 86_400_000,
      maxJobs: 3,
    });
    const result = (name: string, more: Partial<ResultRow>): ResultRow => ({
      ...{
        jobId: FAILING,
        name,
        state: 'synced',
        reason: null,
        bytes: 2_048,
        sha256: 'aa',
        live: null,
        listedAt: minutes(6),
      },
      ...{ fetchedAt: minutes(5), hangs: 0, dueAt: NOW, intervalMs: 1_000, stamp: null, stampProven: false },
      ...more,
    });
    store.results.saveAll([
      result('/9001/a.dat', {}),
      result('/9001/b.dat', { state: 'failed', reason: 'no space left on device', bytes: null }),
      result('/9001/c.dat', { state: 'failed', reason: 'no space left on device', bytes: null }),
      result('/9001/d.dat', { state: 'listed', reason: 'not asked for yet', bytes: null }),
      result('/9001/e.dat', { state: 'left-out', reason: 'excluded', bytes: 1 }),
      result('/../f.dat', { state: 'refused', reason: 'unsafe name' }),
      result('/9001/g.dat', { state: 'in-flux', reason: 'changed meanwhile' }),
      result('/9001/h.txt', { state: 'linked', bytes: null, sha256: null, live: '9001/stdout' }),
    ]);
    store.resultSyncs.save({
      jobId: FAILING,
      startedAt: minutes(6),
      updatedAt: minutes(5),
      endedAt: minutes(5),
      wanted: 9,
      done: 7,
      wantedBytes: null,
      bytes: 6_144_000,
      way: 'rsync',
      fallback: 'the key was refused',
      arriving: [],
    });
    const [mail, hook] = config.notify.map((settings) => new Rule(settings).id);
    const delivery = { jobId: FAILING, event: newEvent('failed', minutes(8), {}), madeAt: minutes(8), lastError: null };
    const givenUp = { ...delivery, deliveryId: 'b', rule: hook ?? '', attempts: 20, lastError: 'status 500' };
    store.outbox.save({ ...givenUp, jobId: null, dueAt: null });
    store.outbox.add([
      {
        ...delivery,
        deliveryId: 'a',
        rule: mail ?? '',
        dueAt: NOW + 120_000,
        attempts: 3,
        lastError: 'no mail server',
      },
      {
        ...delivery,
        deliveryId: 'c',
        rule: 'of a former configuration',
        dueAt: minutes(1),
        attempts: 0,
        event: { ...delivery.event, count: 4, jobId: FAILING },
      },
    ]);
  });
  for (const [jobId, task, name, text] of [
    [FAILING, '9001', 'stdout', 'one\ntwo\nError: three\nfour\nfive\n'],
    [FAILING, '9001', 'stdout.1', 'older\nError: before\n'],
    [FAILING, '9001', 'stderr', 'fatal\u001b[2J: two\n'],
    [SETTLED, '9004', 'stdout', 'done\n'],
  ] as const) {
    const mirror = path.join(config.mirror.directory, jobId, 'live', task, name.replace(/^(\w+)/, '$1.log'));
    fs.mkdirSync(path.dirname(mirror), { recursive: true });
    fs.writeFileSync(mirror, text);
    const at = minutes(name === 'stderr' ? 600 : 10) / 1_000;
    fs.utimesSync(mirror, at, at);
  }
}

/** What a command line prints and its exit code; lines of the standard error begin with `!`. */
async function printed(file: string, ...args: readonly string[]): Promise<string> {
  let text = '';
  const out = vi.spyOn(process.stdout, 'write').mockImplementation((written) => {
    text += String(written);
    return true;
  });
  const error = vi.spyOn(process.stderr, 'write').mockImplementation((written) => {
    text += String(written).replaceAll(/^(?=.)/gm, '!');
    return true;
  });
  process.exitCode = undefined;
  const [command = '', ...rest] = args;
  try {
    await execute([command, '--config', file, ...rest]);
  } finally {
    out.mockRestore();
    error.mockRestore();
  }
  const shown = text
    .replaceAll(path.dirname(file), 'DIR')
    .replaceAll(`pid ${process.pid}`, 'pid 1')
    .replaceAll(/\d\d:\d\d:\d\d(?=\))/g, 'TIME')
    .replaceAll(/ in [\d.]+ \w+ \([^)]*\/s\)/g, ' in TIME')
    .replaceAll(/in \d+ ms/g, 'in TIME')
    .replaceAll(/[\d.]+ [KMGT]?i?B free/g, 'SIZE free')
    // What this machine has for direct transfers.
    .replaceAll(/(?<=✓ results {7}).*\n(?:· .*way of its last results\n)?/g, 'WAY\n')
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
  ['results', FAILING],
  ['results', FAILING, '--json'],
  ['results', '999'],
  ['notify', '--list'],
  ['wait', SETTLED, ENDED],
  ['wait', FAILING, SETTLED, '--any'],
  ['wait', FAILING, SETTLED, '--timeout', '0.05s'],
  ['wait', SETTLED, ENDED, '--json'],
  ['tail', FAILING, SETTLED, '-n', '2'],
  ['tail', FAILING, '--file', 'stdout', '--no-prefix', '-n', '1', '--since', '1h'],
  ['tail', FAILING, '--since', '1h'],
  ['tail', FAILING, '--file', 'stderr', '--no-prefix', '--raw', '-n', 'all'],
  ['tail', '4711'],
  ['tail', FAILING, '--task', '9009'],
  ['tail', FAILING, SETTLED, '-f'],
  ['errors'],
  ['errors', '--json'],
  ['errors', SETTLED],
  ['grep', '-n', '-C', '1', 'three', FAILING],
  ['grep', '-c', '-v', 'o', '--all-generations'],
  ['grep', '-h', '-m', '1', '-A', '1', '-i', 'ERROR|ONE', '--since', '1h', '--file', 'stdout'],
  ['grep', '-l', '-w', 'two'],
  ['grep', '-q', 'two'],
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
  ['forget', SETTLED, '--dry-run'],
  ['forget', SETTLED, '--unproven'],
  ['forget'],
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
  await writeState();
  let all = '';
  for (const line of LINES) all += await printed(configFile, ...line);
  await expect(all).toMatchFileSnapshot('printed.txt');
  expect(fs.readdirSync(temporary)).toEqual([]);
});

it('each command that an agent works for prints what the agent did', async () => {
  const [remote, service] = [new ModelRemote(), new ModelJobService()];
  remote.files.set('9001/stdout', Buffer.from('one\ntwo\n'));
  service.set(jobOf('501', 'Running', { tasks: tasksOf('9001') }));
  service.set(jobOf('502', 'Queued', { name: 'another' }));
  const { agent, store, mirrorDirectory } = await startAgent(remote, { jobService: service });
  const wakes = new FileWatch();
  wakes.watch(new Map([[path.join(store.directory, WAKE_FILE), () => agent.refresh()]]));
  onTestFinished(() => wakes.close());
  const ofAgent = path.join(path.dirname(mirrorDirectory), 'config.yaml');
  const file = path.join(path.dirname(mirrorDirectory), 'with-jobs.yaml');
  const jobsUrl = '\n  jobsUrl: "https://m.example.org/JobManagementWs"\nauth:';
  fs.writeFileSync(file, fs.readFileSync(ofAgent, 'utf8').replace('\nauth:', jobsUrl), { mode: 0o600 });
  let all = '';
  const run = async (...line: readonly string[]) => (all += await printed(file, ...line));
  await run('jobs');
  await run('watch', '999');
  await run('watch', FAILING, '--file', 'stdout', '--no-results', '--task', TASK, '--stall-after', '2h');
  expect(store.jobs.get(FAILING)).toMatchObject({ results: false, stallAfterMs: 7_200_000, settleAfterMs: null });
  expect(store.liveFiles.ofJob(FAILING).map(({ file }) => file)).toEqual(['stdout']);
  await vi.waitFor(() => expect(store.liveFiles.ofJob(FAILING)[0]?.position).toBe(8));
  await run('sync', FAILING);
  await run('verify', FAILING);
  await run('verify', FAILING, '--json');
  await run('watch', '--mine', '--include', 'none-*', '--exclude', 'x*', '--max-age', '2h', '--max-jobs', '7');
  const rule = { include: ['none-*'], exclude: ['x*'], maxAgeMs: 7_200_000, maxJobs: 7 };
  expect(store.watchMine.of('command')).toMatchObject(rule);
  await run('unwatch', '--mine');
  await run('unwatch', FAILING);
  await run('forget', '999', '--yes');
  await run('forget', FAILING, '--yes', '--unproven', '--delete-files');
  expect(fs.existsSync(path.join(mirrorDirectory, FAILING))).toBe(false);
  expect(store.requests.open('service')).toEqual([]);
  await expect(all).toMatchFileSnapshot('printed-by-agent.txt');
});
