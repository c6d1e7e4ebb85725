/** Running jobs beside jobs that are over, on a service that needs long for each call. */
import { expect, it } from 'vitest';
import { MAX_QUEUED_POLLS } from '../../../src/agent/calls.ts';
import { type JobId, keyText, type TaskId } from '../../../src/job.ts';
import { sleep } from '../../../src/system/clock.ts';
import { startAgent } from '../../support/composed-agent.ts';
import { HeldClock } from '../../support/held-clock.ts';
import { at, jobOf, ModelJobService, ModelRemote, tasksOf } from '../../support/model-remote.ts';

const RUNNING = '700' as JobId;
const MANY = 25;
const MAX_GAP_MS = 30_000;
const MAX_END_MS = 10 * 60_000;
const REWRITE_MS = 10_000;
const ALL = { include: ['**'], exclude: [], maxAgeMs: 60_000, maxJobs: 200 };

class SlowRemote extends ModelRemote {
  callMs = 2_000;
  readonly polls = new Map<JobId, number[]>();
  readonly #clock: HeldClock;

  constructor(clock: HeldClock) {
    super();
    this.#clock = clock;
  }

  override async readParts(...args: Parameters<ModelRemote['readParts']>) {
    const [jobId, , signal] = args;
    this.polls.set(jobId, [...(this.polls.get(jobId) ?? []), this.#clock.monotonic()]);
    await sleep(this.#clock, this.callMs, signal);
    return await super.readParts(...args);
  }

  override async listChangedFiles(...args: Parameters<ModelRemote['listChangedFiles']>) {
    await sleep(this.#clock, this.callMs, args[1]);
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
  const started = await startAgent(remote, { clock, jobService });
  started.agent.start([], ALL);
  return { ...started, clock, remote };
}

it('a running job is polled first and again and again while many jobs that are over end', async () => {
  const { clock, remote, store } = await many();
  for (let id = 100; id < 100 + MANY; id++) remote.files.set(`9${id}/stdout`, Buffer.from('the end\n'));
  remote.onPartRequest = ({ taskId, file }) => {
    const text = `${Math.floor(clock.monotonic() / REWRITE_MS)}\n`;
    if (taskId === '9700' && file === 'progress') remote.files.set('9700/progress', Buffer.from(text));
  };
  const isHere = () => store.jobs.all().some(({ jobId, grownAt }) => jobId !== RUNNING && grownAt !== null);
  await clock.passUntil('the first live file of a job that is over', isHere);
  expect(remote.polls.size).toBeLessThan(MANY / 2);
  remote.files.clear();
  expect([...remote.polls.keys()].slice(0, 6)).toContain(RUNNING);
  await clock.passUntil('the last passes of all', () => store.jobs.settled().size === MANY, 2 * 60 * 60_000);
  const times = [...(remote.polls.get(RUNNING) ?? []), clock.monotonic()];
  const gaps = times.map((time, index) => time - (times[index - 1] ?? 0));
  expect(Math.max(...gaps)).toBeLessThan(MAX_GAP_MS);
});

it('a running job is polled before many that are over when the agent starts again, by a service that is quick', async () => {
  const { clock, remote, watch, restart } = await many();
  remote.callMs = 1;
  await clock.passUntil('polls of all', () => remote.polls.size > MANY);
  // Its row is the last one now.
  watch({ jobId: RUNNING });
  await restart();
  remote.polls.clear();
  await clock.passUntil('polls of all again', () => remote.polls.size > MANY);
  expect([...remote.polls.keys()].slice(0, 6)).toContain(RUNNING);
});

it('a job that is over ends while many running jobs grow at each poll', async () => {
  const { clock, remote, store } = await many(false);
  remote.onPartRequest = (request) => {
    if (request.taskId === '9700') return;
    const before = remote.files.get(keyText(request)) ?? Buffer.alloc(0);
    if (request.file === 'stdout') remote.files.set(keyText(request), Buffer.concat([before, Buffer.from('grows\n')]));
  };
  await clock.passUntil('the last pass', () => store.jobs.settled().has(RUNNING), MAX_END_MS);
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
