/** What the routes do with the state: the orders that they make of a body, and how long they wait. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import type { ApiParts } from '../../src/api/work.ts';
import { endNow, statusOf, verify, waitFor, watch } from '../../src/api/work.ts';
import { SharedState } from '../../src/daemon/state.ts';
import { EXIT } from '../../src/errors.ts';
import { type JobId, LIVE_FILE_NAMES, type TaskId } from '../../src/job.ts';
import { liveParts, resultsParts } from '../../src/safe-names.ts';
import { ownState } from '../cli/own-state.ts';
import { until } from '../support/e2e-until.ts';

const JOB = '501' as JobId;
const TASK = '9001' as TaskId;
const { signal } = new AbortController();

/** A job that is followed, with mirrors. */
async function setUp(sections = {}, tasks: readonly TaskId[] | null = [TASK]) {
  const { config, store } = await ownState(sections);
  const state = new SharedState(config);
  onTestFinished(() => state.close());
  const order = { jobId: JOB, tasks, files: LIVE_FILE_NAMES, results: false, settleAfterMs: null } as const;
  store.transaction(() => store.jobs.watch({ ...order, source: 'command' }, 1));
  const files = LIVE_FILE_NAMES.map((file) =>
    path.join(config.mirror.directory, ...liveParts(JOB, { taskId: TASK, file })),
  );
  for (const file of files) {
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, '');
  }
  const parts = { config, state, surroundings: async () => ({ disks: [] }) } as unknown as ApiParts;
  return { config, store, parts, files, order };
}

const FILES = [...LIVE_FILE_NAMES];

it.each([
  ['nothing else', {}, true, FILES, null],
  ['null for each', { tasks: null, files: null, results: null, stallAfterMinutes: null }, true, FILES, null],
  ['no results', { results: false }, false, FILES, null],
  ['files by name', { files: ['log', 'stdout', 'log'] }, true, ['log', 'stdout'], null],
  ['eight minutes and twelve seconds', { stallAfterMinutes: 8.2 }, true, FILES, 492_000],
])('a body with a job and %s is an order to follow it', async (_, body, results, names, stallAfterMs) => {
  const { config, store, parts, files, order } = await setUp({}, 'tasks' in body ? null : [TASK]);
  const ordered = vi.spyOn(parts.state.store.jobs, 'watch');
  const watched = watch(parts, { jobId: JOB, tasks: [TASK, TASK], ...body }, signal);
  // A search for tasks finds one.
  store.transaction(() => store.jobs.watch({ ...order, tasks: [TASK], source: 'command' }, 1));
  const error = { code: 'fault', message: 'no', hint: null, since: 1 } as const;
  store.jobs.endRun(JOB, { polledAt: 1, grownAt: null, refused: 0, failures: 1, error });
  const report = await watched;
  const usual = { jobId: JOB, settleAfterMs: null, source: 'command', results, files: names };
  const tasks = 'tasks' in body ? null : [TASK];
  expect(ordered.mock.lastCall?.[0]).toEqual({ ...usual, tasks, ...(stallAfterMs && { stallAfterMs }) });
  const own = files.filter((file) => names.some((name) => name === path.basename(file, '.log')));
  expect({ ...report, files: [...report.files].sort() }).toEqual({
    ...{ jobId: JOB, isFollowed: true, files: own.sort() },
    results: results ? path.join(config.mirror.directory, ...resultsParts(JOB)) : null,
  });
});

it('a body orders no results where the configuration has none', async () => {
  const { parts } = await setUp({ results: { enabled: false } });
  expect(await watch(parts, { jobId: JOB, tasks: [TASK], results: true }, signal)).toMatchObject({ results: null });
});

it('a wait ends with its time, with the job, or with its client', async () => {
  const { store, parts } = await setUp();
  const wait = (seconds: number, of = signal) => waitFor(parts, JOB, { seconds, signal: of });
  const timeIsUp = { exitCode: EXIT.timeIsUp, timedOut: true, jobs: [], waitingFor: [JOB] };
  const begun = performance.now();
  const reads = vi.spyOn(parts.state.store.jobs, 'get');
  expect(await wait(0)).toEqual(timeIsUp);
  expect(await wait(1)).toEqual(timeIsUp);
  expect(reads.mock.calls.length, 'twice a second').toBeLessThan(10);
  expect(performance.now() - begun).toBeGreaterThanOrEqual(1_000);
  const client = new AbortController();
  const gone = wait(3_600, client.signal);
  client.abort();
  await expect(gone).rejects.toMatchObject({ name: 'AbortError' });
  const ended = wait(3_600);
  expect(endNow(parts, JOB)).toEqual({ jobId: JOB, state: 'ended', pass: null });
  expect(await ended).toMatchObject({ exitCode: EXIT.failed, timedOut: false, jobs: [{ jobId: JOB }], waitingFor: [] });
  store.transaction(() => store.jobs.forget(JOB, 1));
  await expect(wait(3_600)).rejects.toMatchObject({ code: 'job-unknown' });
  const unknown = waitFor(parts, '503' as JobId, { seconds: 3_600, signal });
  await expect(unknown).rejects.toThrow('job 503 is not watched');
});

it('four clients at a time have a verification, and one that goes away gives its place to the next', async () => {
  const { store, parts } = await setUp();
  const clients = Array.from({ length: 6 }, () => new AbortController());
  const names = clients.map(({ signal: of }) =>
    verify(parts, JOB, { isComplete: false, signal: of }).catch((error: Error) => error.name),
  );
  const placed = () => store.requests.open('service').map(({ requestId }) => requestId);
  await until('four requests', () => placed().length === 4);
  const before = placed();
  for (const gone of [4, 0]) clients[gone]?.abort();
  await until('the place of the first', () => placed().length === 4 && !placed().every((id) => before.includes(id)));
  for (const client of clients) client.abort();
  expect(new Set(await Promise.all(names))).toEqual(new Set(['AbortError']));
});

it('a job that a command ends is ended in the state, and the agent wakes, also for one of the configuration', async () => {
  const { config, store, parts } = await setUp({ watch: [{ job: 502, tasks: [9001] }] });
  const wake = path.join(config.state.directory, 'wake');
  for (const jobId of [JOB, '502' as JobId]) {
    fs.rmSync(wake, { force: true });
    endNow(parts, jobId);
    expect([store.jobs.get(jobId)?.state, fs.existsSync(wake)]).toEqual(['ended', true]);
  }
  expect(() => endNow(parts, '503' as JobId)).toThrow(expect.objectContaining({ code: 'job-unknown' }));
});

it('the status is of the wanted jobs, with what surrounds them', async () => {
  const { store, parts } = await setUp();
  const other = '502' as JobId;
  store.transaction(() => {
    const order = { jobId: other, tasks: [], files: [], results: false, settleAfterMs: null } as const;
    store.jobs.watch({ ...order, source: 'command' }, 1);
    store.jobs.setState(other, 'ended');
  });
  const ids = async (wanted: Parameters<typeof statusOf>[1]) =>
    (await statusOf(parts, wanted)).jobs.map(({ jobId }) => jobId);
  expect([await ids(undefined), await ids('all'), await ids([other])]).toEqual([[JOB], [JOB, other], [other]]);
  expect(await statusOf(parts, undefined)).toMatchObject({ disks: [] });
  await expect(statusOf(parts, [JOB, '503' as JobId])).rejects.toMatchObject({ code: 'job-unknown' });
});
