/** All that commands print of one state in which everything has happened, as people see it. */
import fs from 'node:fs';
import path from 'node:path';
import { afterEach, expect, it, onTestFinished, vi } from 'vitest';
import { execute } from '../../src/cli/execute.ts';
import { FileWatch } from '../../src/daemon/watch-files.ts';
import type { JobId } from '../../src/job.ts';
import { WAKE_FILE } from '../../src/store/store.ts';
import { startAgent } from '../support/composed-agent.ts';
import { until } from '../support/e2e-until.ts';
import { ENDED, FAILING, NOW, SEARCHED, SETTLED, TASK, writeState } from '../support/full-state.ts';
import { jobOf, ModelJobService, ModelRemote, tasksOf } from '../support/model-remote.ts';
import { directoryOfFile } from '../support/temp-directory.ts';

const directory = directoryOfFile();
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  process.exitCode = undefined;
});

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
  ['tail', SEARCHED],
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
  ['grep', '('],
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
  const { configFile } = await writeState(directory);
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
  // The target works once the gate is there.
  const gate = path.join(path.dirname(file), 'gate');
  const rule = JSON.stringify({ on: ['failed'], command: ['sh', '-c', '[ -e "$0" ] && cat >> "$0"', gate] });
  const text = fs.readFileSync(ofAgent, 'utf8').replace('\nauth:', jobsUrl);
  fs.writeFileSync(file, `${text}\nnotify: [${rule}]\n`, { mode: 0o600 });
  let all = '';
  const run = async (...line: readonly string[]) => (all += await printed(file, ...line));
  await run('notify', '--test');
  fs.writeFileSync(gate, '');
  await run('notify', '--test');
  expect(JSON.parse(fs.readFileSync(gate, 'utf8'))).toMatchObject({ type: 'test', count: 1 });
  await run('jobs');
  await run('watch', '999');
  await run('watch', FAILING, '--file', 'stdout', '--no-results', '--task', TASK, '--stall-after', '2h');
  expect(store.jobs.get(FAILING)).toMatchObject({ results: false, stallAfterMs: 7_200_000, settleAfterMs: null });
  expect(store.liveFiles.ofJob(FAILING).map(({ file }) => file)).toEqual(['stdout']);
  await until('its lines', () => store.liveFiles.ofJob(FAILING)[0]?.position === 8);
  await run('sync', FAILING);
  await run('verify', FAILING);
  await run('verify', FAILING, '--json');
  remote.files.set('9001/new', Buffer.from('x'));
  await run('verify', FAILING);
  remote.files.delete('9001/new');
  await run('watch', '--mine', '--include', 'none-*', '--exclude', 'x*', '--max-age', '2h', '--max-jobs', '7');
  const mine = { include: ['none-*'], exclude: ['x*'], maxAgeMs: 7_200_000, maxJobs: 7 };
  expect(store.watchMine.of('command')).toMatchObject(mine);
  await run('unwatch', '--mine');
  await run('unwatch', FAILING);
  await run('forget', '999', '--yes');
  await run('forget', FAILING, '--yes', '--unproven', '--delete-files');
  expect(fs.existsSync(path.join(mirrorDirectory, FAILING))).toBe(false);
  store.jobs.watch(
    { jobId: '503' as JobId, tasks: [], files: [], results: false, settleAfterMs: null, source: 'command' },
    0,
  );
  await run('verify', '503');
  expect(store.requests.open('service')).toEqual([]);
  await expect(all).toMatchFileSnapshot('printed-by-agent.txt');
});
