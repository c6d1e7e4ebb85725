/** Commands that wait in this process beside the agent that follows the job: what they print, each thing once. */
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { expect, it, onTestFinished, vi } from 'vitest';
import { status } from '../../src/cli/commands/status.ts';
import { sync } from '../../src/cli/commands/sync.ts';
import { tail } from '../../src/cli/commands/tail.ts';
import { wait } from '../../src/cli/commands/wait.ts';
import { watchEach } from '../../src/cli/commands/watch.ts';
import { watchHere } from '../../src/cli/commands/watch-foreground.ts';
import { withServedState } from '../../src/cli/serve-state.ts';
import { openAsAgent, openOwnStore } from '../../src/daemon/own-state.ts';
import { JobtailError } from '../../src/errors.ts';
import type { JobId, TaskId } from '../../src/job.ts';
import { LinkedAbort } from '../../src/linked-abort.ts';
import { Secrets } from '../../src/redact.ts';
import { JobInformations, Requests } from '../../src/store/jobs.ts';
import { lockHolder } from '../../src/store/lock.ts';
import type { JobRow, StoredError, WatchRequest } from '../../src/store/rows.ts';
import { restConfig } from '../config/files.ts';
import { until } from '../support/e2e-until.ts';
import { SILENT } from '../support/errors.ts';
import { jobOf, tasksOf } from '../support/model-remote.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';
import { captured, ownState } from './own-state.ts';

const JOB = '501' as JobId;
const TASK = '601' as TaskId;

/** The state of an agent, its mirror of one file, and what a command prints on a terminal while seconds pass quickly. */
async function followedJob(tasks: readonly TaskId[] | null, sections = {}) {
  const { file, config, store } = await ownState(sections);
  const mirror = path.join(config.mirror.directory, JOB, 'live', TASK, 'stdout.log');
  fs.mkdirSync(path.dirname(mirror), { recursive: true });
  fs.writeFileSync(mirror, '');
  const more = { results: false, settleAfterMs: null, source: 'command' } as const;
  const request: WatchRequest = { jobId: JOB, tasks, files: ['stdout', 'stderr'], ...more };
  store.transaction(() => store.jobs.watch(request, Date.now()));
  const printed = captured();
  const now = performance.now.bind(performance);
  const { stdout, stderr } = process;
  const { isTTY, columns } = stdout;
  for (const stream of [stdout, stderr]) stream.isTTY = true;
  vi.spyOn(performance, 'now').mockImplementation(() => now() * 20);
  onTestFinished(() => {
    for (const stream of [stdout, stderr]) stream.isTTY = isTTY;
    Object.assign(stdout, { columns });
  });
  return {
    ...{ file, config, store, request },
    append: (text: string) => fs.appendFileSync(mirror, text),
    remove: () => fs.rmSync(mirror),
    tail: (lines: number) => tail([JOB], { config: file, follow: true, lines, prefix: false, task: [], file: [] }),
    shown: (text: string) => until(text, () => printed().includes(text) || undefined),
    printed,
    reported: (jobState: string) =>
      store.jobInformation.save({ jobId: JOB, information: jobOf(JOB, jobState), since: 1, reportedAt: 1 }),
    failed(name: 'stdout' | 'stderr', message: string) {
      const error: StoredError = { code: 'local-io', message, hint: null, since: 1 };
      for (const row of store.liveFiles.ofJob(JOB)) if (row.file === name) store.liveFiles.save({ ...row, error });
    },
  };
}

/** The limits of a command are over so many times as soon. */
function withoutPatience(times: number) {
  const [now, { within }] = [performance.now.bind(performance), LinkedAbort.prototype];
  vi.spyOn(performance, 'now').mockImplementation(() => now() * times);
  return vi.spyOn(LinkedAbort.prototype, 'within').mockImplementation(function (this: LinkedAbort, ms) {
    return within.call(this, ms / times);
  });
}

it('tail --follow prints each error and each state once, below the line that has no end yet', async () => {
  const job = await followedJob([TASK]);
  // Room for a line of eight, and for the cursor after it.
  process.stdout.columns = 9;
  job.remove();
  const following = job.tail(10);
  await job.shown('its lines appear when it is found');
  job.append('first\nhalf');
  await job.shown('half');
  job.failed('stdout', 'no space');
  await job.shown('no space');
  job.reported('Queued');
  await job.shown('Queued');
  job.failed('stderr', 'too large');
  await job.shown('too large');
  job.append(' a line\nhalf');
  await until('the next line', () => job.printed().endsWith('half') || undefined);
  job.reported('Running');
  await job.shown('Running');
  job.append('half');
  await until('the next line', () => job.printed().endsWith('half') || undefined);
  job.append(' is over\nlast\n');
  await job.shown('last');
  job.reported('Finishing');
  await job.shown('Finishing');
  job.store.jobs.setState(JOB, 'settled');
  await following;
  expect(stripVTControlCharacters(job.printed()).split('\n')).toEqual([
    `no live file of job ${JOB} found yet (agent status ${JOB}); its lines appear when it is found`,
    ...['first', 'half', `task ${TASK} stdout: no space`, `job ${JOB} is Queued`, `task ${TASK} stderr: too large`],
    ...['half a line', 'half', `job ${JOB} is Running`, 'halfhalf\rhalfhalf is over', 'last'],
    ...[`job ${JOB} is Finishing`, `job ${JOB} is settled: no more lines`, ''],
  ]);
});

it('watch of a job that was settled reports that, and fetches no results where none are wanted', async () => {
  const job = await followedJob([TASK], { results: { enabled: false } });
  const files = ['stdout', 'stdout'] as const;
  const options = { config: job.file, task: [TASK], file: files, results: true, wait: true };
  for (const state of ['is watched', 'was settled, and is watched again until it settles anew']) {
    const watching = watchEach([JOB], options);
    const asked = await until('the question', () => job.store.requests.open('service')[0]);
    job.store.requests.answer(
      asked.requestId,
      JSON.stringify({ jobs: [jobOf(JOB, 'Running', { tasks: tasksOf(TASK) })] }),
    );
    await watching;
    const [shown, ...notes] = stripVTControlCharacters(job.printed()).split('\n');
    expect(shown).toBe(path.join(job.config.mirror.directory, JOB, 'live', TASK, 'stdout.log'));
    expect(notes.at(-3)).toBe(`job ${JOB} ${state}; the running agent follows it`);
    expect(job.store.jobs.get(JOB)).toMatchObject({ state: 'watched', results: false });
    job.store.jobs.setState(JOB, 'settled');
  }
});

it('watch of several jobs asks for all at once, and ends although the agent answers nothing', async () => {
  const { file, store } = await ownState();
  captured();
  withoutPatience(20);
  const jobIds = ['601', '602', '603'] as JobId[];
  const watching = watchEach(jobIds, { config: file, task: [], file: [], results: true, wait: true });
  await until('all to be asked for', () => store.requests.open('service').length === jobIds.length);
  await watching;
  expect(jobIds.map((jobId) => store.jobs.get(jobId)?.state)).toEqual(['watched', 'watched', 'watched']);
});

it('watch beside an agent refuses a directory of mirrors that cannot be used', async () => {
  const { file, config, store } = await ownState();
  const { directory } = config.mirror;
  fs.rmSync(directory, { recursive: true });
  fs.writeFileSync(directory, '');
  const options = { config: file, task: [TASK], file: [], results: true, wait: true };
  const message = expect.stringContaining(`mirror.directory ${directory} cannot be used`);
  await expect(watchEach([JOB], options)).rejects.toMatchObject({ code: 'permission', message });
  expect(store.jobs.all()).toEqual([]);
});

it('watch --foreground prints each line and each state once, while its last row shows the progress', async () => {
  const job = await followedJob(null);
  job.append('before\n');
  const watching = watchHere(job.config, job.request, 10);
  await job.shown('last growth');
  expect(job.printed()).not.toContain('before');
  const end = { stalledAt: null, grownAt: null, refused: 0, failures: 0, error: null };
  job.store.jobs.endRun(JOB, { polledAt: Date.now(), ...end });
  await job.shown('before');
  job.append('after\n');
  await job.shown('after');
  job.reported('Running');
  await job.shown('is Running\n');
  expect(job.store.requests.open('follow')).toHaveLength(1);
  job.store.jobs.setState(JOB, 'settled');
  await watching;
  expect(job.store.requests.open('follow')).toEqual([]);
  const [row, erased] = ['looking for its tasks, last growth never', '\r\u001b[J'];
  expect(job.printed().split('\n')).toEqual([
    'tasks: none is known yet; probes search for them',
    `job ${JOB}: ${row}${erased}${TASK} stdout | before`,
    `job ${JOB}: ${row}${erased}${TASK} stdout | after`,
    `job ${JOB}: ${row}${erased}job ${JOB} is Running`,
    `job ${JOB}: Running, ${row}${erased}job ${JOB} is settled`,
    '',
  ]);
});

it('sync shows on a terminal how far the results are, and nothing of it stays', async () => {
  const job = await followedJob([TASK]);
  const syncing = sync(JOB, { config: job.file });
  const asked = await until('the request', () => job.store.requests.open('pass')[0]);
  const startedAt = Date.now();
  const counts = { wanted: 100, done: 20, bytes: 2_097_152, wantedBytes: null, way: 'soap', fallback: null } as const;
  const row = { jobId: JOB, ...counts, endedAt: null, arriving: [] };
  job.store.resultSyncs.save({ ...row, startedAt, updatedAt: startedAt + 2_000 });
  await job.shown('] 20 of 100 files, 2.0 MiB, 1.0 MiB/s');
  const summary = { appended: 0, liveFiles: 1, verified: 1, openEnds: [], results: null, isListingEmpty: false };
  job.store.requests.answer(asked.requestId, JSON.stringify({ summary }));
  await syncing;
  expect(job.printed()).toContain('\r\u001b[Jjob 501: 1 live file, 1 verified');
});

it('watch --foreground of a job that is removed meanwhile ends, and reports that', async () => {
  const job = await followedJob([TASK]);
  const watching = watchHere(job.config, job.request, 0);
  await job.shown('last growth');
  job.store.transaction(() => job.store.jobs.forget(JOB, Date.now()));
  await watching;
  expect(job.printed()).toMatch(/job 501 is ended\n$/);
});

it('tail --follow of a job that is removed meanwhile, or was before, prints its lines and ends', async () => {
  const job = await followedJob([TASK]);
  job.append('first\n');
  const first = job.tail(1);
  await job.shown('first');
  job.store.transaction(() => job.store.jobs.forget(JOB, Date.now()));
  job.append('last');
  for (const ending of [first, job.tail(1)]) await ending;
  const end = `last\njob ${JOB} is unwatched: no more lines\n`;
  expect(stripVTControlCharacters(job.printed())).toBe(`first\n${end}${end}`);
});

it('tail --follow of a job whose state was lost reports that, and goes on once it is watched again', async () => {
  const job = await followedJob([TASK]);
  job.append('first\n');
  job.store.portableRows.forget(JOB);
  const following = job.tail(1);
  await job.shown(`job ${JOB} is not watched: its lines come once it is (agent watch ${JOB})\n`);
  job.store.transaction(() => job.store.jobs.watch(job.request, Date.now()));
  job.store.jobs.setState(JOB, 'settled');
  await following;
  expect(job.printed()).toMatch(/job 501 is settled: no more lines\n$/);
});

it('status --watch goes on while the state is away for a moment', async () => {
  const job = await followedJob([TASK]);
  const watching = status([JOB], { config: job.file, watch: true });
  await job.shown('every second; Ctrl-C ends)');
  const database = path.join(job.config.state.directory, 'agent.db');
  fs.renameSync(database, `${database}.away`);
  await job.shown(`there is no state in ${job.config.state.directory} yet`);
  fs.renameSync(`${database}.away`, database);
  const before = job.printed().length;
  await until('the job again', () => job.printed().includes(`job ${JOB}: watched`, before) || undefined);
  process.emit('SIGINT', 'SIGINT');
  await watching;
});

it('wait --tail prints the last lines of jobs that are over, and requests each until then only', async () => {
  const job = await followedJob([TASK]);
  const other = '502' as JobId;
  job.store.transaction(() => job.store.jobs.watch({ ...job.request, jobId: other }, Date.now()));
  job.append('first\n');
  const waiting = wait([JOB, other, JOB], { config: job.file, tail: true });
  await job.shown('first');
  const requested = () => job.store.requests.open('follow').map(({ jobId }) => jobId);
  expect(requested().sort()).toEqual([JOB, other]);
  job.reported('Finished');
  job.store.jobs.setState(JOB, 'settled');
  await until('its end', () => requested().length === 1);
  job.append('last');
  job.store.jobs.setState(other, 'settled');
  await waiting;
  expect([requested(), process.exitCode]).toEqual([[], 1]);
  const lines = stripVTControlCharacters(job.printed()).split('\n');
  expect(lines.slice(0, 3)).toEqual([
    ...[`${JOB} ${TASK} stdout   | first`, `${JOB} ${TASK} stdout   | last`],
    `job ${JOB} is Finished: 0 of 2 live files verified, 0 results`,
  ]);
  expect(lines).toContain(`job ${other} is settled: 0 of 2 live files verified, 0 results`);
});

it('wait goes on where its request can be neither renewed nor removed, as on a full disk', async () => {
  const job = await followedJob([TASK]);
  const [renew, remove] = (['renew', 'remove'] as const).map((name) =>
    vi.spyOn(Requests.prototype, name).mockImplementation(() => {
      throw new JobtailError('disk-full', 'no space left on device');
    }),
  );
  const waiting = wait([JOB], { config: job.file });
  await until('two renewals', () => (renew?.mock.calls.length ?? 0) > 1 || undefined);
  job.reported('Failed');
  job.store.jobs.setState(JOB, 'settled');
  await waiting;
  expect(process.exitCode, job.printed()).toBe(10);
  expect(remove).toHaveBeenCalled();
});

it('wait reports what is still to come when its time is up', async () => {
  const job = await followedJob([TASK]);
  const other = '502' as JobId;
  job.store.transaction(() => job.store.jobs.watch({ ...job.request, jobId: other }, Date.now()));
  job.reported('Finished');
  const error = { code: 'unreachable', message: 'connection refused', hint: null, since: 1 } as const;
  job.store.jobs.save({ ...(job.store.jobs.get(other) as JobRow), error });
  await wait([JOB, other], { config: job.file, timeout: 2_000 });
  expect(job.store.requests.open('follow')).toEqual([]);
  expect([job.printed(), process.exitCode]).toEqual([
    `job ${JOB} is Finished, and its last complete pass is not done, and the time is up\n` +
      `job ${other} is not reported yet (last error: connection refused), and the time is up\n`,
    12,
  ]);
  // A state that cannot be read at that moment changes nothing of it.
  const read = vi.spyOn(JobInformations.prototype, 'get').mockReturnValueOnce(undefined);
  read.mockImplementation(() => {
    throw new JobtailError('store', 'it is away');
  });
  await wait([JOB], { config: job.file, timeout: 2_000 });
  expect([job.printed().split('\n').at(-2), process.exitCode]).toEqual([
    `job ${JOB} cannot be read now (it is away), and the time is up`,
    12,
  ]);
});

it('wait asks a service that hangs for the first of its jobs only', async () => {
  const server = net.createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as net.AddressInfo;
  const { file } = await restConfig({ service: { protocol: 'rest', baseUrl: `http://127.0.0.1:${port}` } });
  captured();
  const limits = withoutPatience(1_000);
  onTestFinished(() => void server.close());
  await wait(['501', '502', '503'] as JobId[], { config: file, timeout: 60_000 });
  expect(process.exitCode).toBe(12);
  expect(limits.mock.calls.filter(([ms]) => ms === 10_000)).toHaveLength(1);
});

it('a command that makes calls itself warns of an address without TLS', async () => {
  const { config } = await restConfig({ service: { protocol: 'rest', baseUrl: 'http://middleware.invalid' } });
  const printed = captured();
  const warning = 'http://middleware.invalid is not encrypted: passwords and session codes are sent unencrypted';
  await withServedState(config, async () => {
    await until('the warning', () => printed().includes(warning));
    return () => {};
  });
});

it('a command that is done before its connection fails ends well', async () => {
  const caFile = path.join(temporaryDirectory(), 'ca.pem');
  fs.writeFileSync(caFile, '');
  const service = { protocol: 'rest', baseUrl: 'https://127.0.0.1:9', tls: { caFile } };
  const { config } = await restConfig({ service });
  fs.rmSync(caFile);
  expect(await withServedState(config, async () => () => 'done')).toBe('done');
  const waiting = withServedState(config, async (_, signal) => void (await once(signal, 'abort')) as never);
  await expect(waiting).rejects.toMatchObject({ code: 'config' });
});

it('a command releases the state to an agent that starts, and serves again once that has ended', async () => {
  const { config } = await restConfig();
  captured();
  const { directory } = config.state;
  const servedBy = (role: string) => until(`the ${role} to serve`, () => lockHolder(directory)?.role === role);
  await withServedState(config, async (_, stop) => {
    await servedBy('command');
    const starting = openAsAgent(config, SILENT, { secrets: new Secrets(), stop });
    await servedBy('agent');
    (await starting)?.close();
    await servedBy('command');
    return () => {};
  });
  expect(lockHolder(directory)).toBeUndefined();
});

it('a command waits out two minutes of failures to take over, anew after each time that another process served', async () => {
  const { config } = await restConfig();
  const pid = path.join(config.state.directory, 'agent.pid');
  const [now, unlink, exists] = [performance.now.bind(performance), fs.unlinkSync, fs.existsSync];
  let passedMs = 0;
  let [failures, looks] = [0, 0];
  vi.spyOn(performance, 'now').mockImplementation(() => now() + passedMs);
  vi.spyOn(fs, 'unlinkSync').mockImplementation((file) => {
    if (file === pid) failures += 1;
    unlink(file);
  });
  vi.spyOn(fs, 'existsSync').mockImplementation((file) => {
    looks += 1;
    return exists(file);
  });
  onTestFinished(() => void vi.restoreAllMocks());
  const more = async (count: () => number) => {
    const before = count();
    await until('more of it', () => count() > before + 1);
  };
  let { close } = openOwnStore(config, SILENT);
  const untilStopped = (signal: AbortSignal) =>
    new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  const outcome = withServedState(config, (_, signal) => untilStopped(signal)).then(
    () => 'over',
    (error: unknown) => error,
  );
  let hasEnded = false;
  void outcome.then(() => {
    hasEnded = true;
  });
  for (let times = 0; times < 2; times++) {
    await more(() => looks);
    close();
    fs.mkdirSync(pid);
    await more(() => failures);
    passedMs += 110_000;
    await more(() => failures);
    expect(hasEnded).toBe(false);
    if (times === 1) break;
    fs.rmdirSync(pid);
    ({ close } = openOwnStore(config, SILENT));
  }
  passedMs += 10_000;
  expect(await outcome).toMatchObject({ code: 'local-io', message: expect.stringContaining(pid) });
});
