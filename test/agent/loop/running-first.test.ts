/** Running jobs beside jobs that are over, on a service that needs long for each call. */
import { expect, it } from 'vitest';
import { MAX_QUEUED_POLLS } from '../../../src/agent/calls.ts';
import { type JobId, keyText, type LiveFileKey, type TaskId } from '../../../src/job.ts';
import { sleep } from '../../../src/system/clock.ts';
import { startAgent } from '../../support/composed-agent.ts';
import { HeldClock } from '../../support/held-clock.ts';
import { at, jobOf, ModelJobService, ModelRemote, tasksOf } from '../../support/model-remote.ts';

const MANY = 25;
const CALL_MS = 2_000;
const MAX_GAP_MS = 30_000;
const MAX_END_MS = 10 * 60_000;
const REWRITE_MS = 10_000;
const ALL = { include: ['**'], exclude: [], maxAgeMs: 60_000, maxJobs: 200 };

class SlowRemote extends ModelRemote {
  readonly polls = new Map<JobId, number[]>();
  readonly #clock: HeldClock;

  constructor(clock: HeldClock) {
    super();
    this.#clock = clock;
  }

  override async readParts(...args: Parameters<ModelRemote['readParts']>) {
    const [jobId, , signal] = args;
    this.polls.set(jobId, [...(this.polls.get(jobId) ?? []), this.#clock.monotonic()]);
    await sleep(this.#clock, CALL_MS, signal);
    return await super.readParts(...args);
  }

  override async listChangedFiles(...args: Parameters<ModelRemote['listChangedFiles']>) {
    await sleep(this.#clock, CALL_MS, args[1]);
    const names = await super.listChangedFiles(...args);
    return names.filter((name) => name.startsWith(`/9${args[0]}/`));
  }
}

/** Many jobs that ended, and one that runs; or many that run, and one that ended. */
async function many(isOver = true) {
  const clock = new HeldClock();
  const jobService = new ModelJobService();
  const ended = { endTime: at(clock.now() - 1_000) };
  const add = (id: number, over: boolean) =>
    jobService.set(jobOf(String(id), over ? 'Finished' : 'Running', { ...(over && ended), tasks: tasksOf(`9${id}`) }));
  for (let id = 100; id < 100 + MANY; id++) add(id, isOver);
  add(700, !isOver);
  const remote = new SlowRemote(clock);
  const { agent, store } = await startAgent(remote, { clock, jobService });
  const start = () => agent.start([], ALL);
  return { clock, jobService, remote, store, start };
}

it('a running job that rewrites its progress file is polled again and again while many jobs that are over end', async () => {
  const { clock, remote, store, start } = await many();
  const progress = keyText({ taskId: '9700', file: 'progress' } as LiveFileKey);
  remote.onPartRequest = ({ taskId, file }) => {
    if (taskId === '9700' && file === 'progress')
      remote.files.set(progress, Buffer.from(`${Math.floor(clock.monotonic() / REWRITE_MS)}\n`));
  };
  start();
  await clock.passUntil('the last passes of all', () => store.jobs.settled().size === MANY, 2 * 60 * 60_000);
  const times = [...(remote.polls.get('700' as JobId) ?? []), clock.monotonic()];
  const gaps = times.map((time, index) => time - (times[index - 1] ?? 0));
  expect(Math.max(...gaps)).toBeLessThan(MAX_GAP_MS);
});

it('a job that is over ends while many running jobs grow at each poll', async () => {
  const { clock, remote, store, start } = await many(false);
  remote.onPartRequest = (request) => {
    if (request.taskId === '9700') return;
    const before = remote.files.get(keyText(request)) ?? Buffer.alloc(0);
    if (request.file === 'stdout') remote.files.set(keyText(request), Buffer.concat([before, Buffer.from('grows\n')]));
  };
  start();
  const startedAt = clock.monotonic();
  await clock.passUntil('the last pass', () => store.jobs.settled().has('700' as JobId));
  expect(clock.monotonic() - startedAt).toBeLessThan(MAX_END_MS);
});

it('the live files of the first job that is over do not wait for the first polls of all', async () => {
  const { clock, remote, store, start } = await many();
  const ids = Array.from({ length: MANY }, (_, index) => String(100 + index) as JobId);
  for (const id of ids) remote.files.set(`9${id}/stdout`, Buffer.from('the end\n'));
  const hasLiveFile = (id: JobId) => store.liveFiles.ofJob(id).some(({ position }) => position > 0);
  start();
  await clock.passUntil('the first live file', () => ids.some(hasLiveFile));
  expect(remote.polls.size).toBeLessThan(MANY / 2);
});

it('a job is polled while downloads of as many others hang as may poll at a time', async () => {
  const clock = new HeldClock();
  const remote = new ModelRemote();
  const ids = Array.from({ length: MAX_QUEUED_POLLS + 1 }, (_, index) => String(100 + index) as JobId);
  remote.files.set('9/stdout', Buffer.from([0x61, 0xff, 0x0a]));
  remote.onDownload = (_path, signal) => sleep(clock, 10 * MAX_END_MS, signal);
  const polled = new Set<JobId>();
  const readParts = remote.readParts.bind(remote);
  remote.readParts = async (...call) => {
    polled.add(call[0]);
    return await readParts(...call);
  };
  const { watch } = await startAgent(remote, { clock, sections: '' });
  for (const jobId of ids) watch({ jobId, tasks: ['9' as TaskId], results: false });
  await clock.passUntil('polls of all', () => polled.size === ids.length, MAX_END_MS);
});

it('running jobs are polled before many finished ones, also when the agent starts again', async () => {
  const clock = new HeldClock();
  const jobService = new ModelJobService();
  const ids = Array.from({ length: 60 }, (_, index) => 100 + index);
  const ended = { endTime: at(clock.now() - 1_000) };
  for (const id of ids) jobService.set(jobOf(String(id), 'Finished', { ...ended, tasks: tasksOf(`9${id}`) }));
  for (const id of ['700', '701']) jobService.set(jobOf(id, 'Running', { tasks: tasksOf(`9${id}`) }));
  const remote = new ModelRemote();
  const polled = new Set<JobId>();
  const readParts = remote.readParts.bind(remote);
  remote.readParts = async (...args) => {
    polled.add(args[0]);
    return await readParts(...args);
  };
  const { agent, restart, watch } = await startAgent(remote, { clock, jobService });
  agent.start([], { include: ['**'], exclude: [], maxAgeMs: 60_000, maxJobs: 100 });
  await clock.passUntil('polls of all', () => polled.size === 62);
  // Among the first are jobs whose next poll was due when their tasks were found.
  expect([...polled].slice(0, 6)).toEqual(expect.arrayContaining(['700', '701']));
  // Their rows are the last ones now.
  for (const jobId of ['700', '701'] as JobId[]) watch({ jobId });
  await restart();
  polled.clear();
  await clock.passUntil('polls of all again', () => polled.size === 62);
  expect([...polled].slice(0, 6)).toEqual(expect.arrayContaining(['700', '701']));
});
