/** Running jobs beside many that are over, on a service that needs long for each call. */
import { expect, it } from 'vitest';
import type { JobId } from '../../../src/job.ts';
import { sleep } from '../../../src/system/clock.ts';
import { startAgent } from '../../support/composed-agent.ts';
import { HeldClock } from '../../support/held-clock.ts';
import { at, jobOf, ModelJobService, tasksOf } from '../../support/model-job-service.ts';
import { ModelRemote } from '../../support/model-remote.ts';

const FINISHED = 60;
const CALL_MS = 2_000;
const MAX_GAP_MS = 30_000;
const ALL = { include: ['**'], exclude: [], maxAgeMs: 60_000, maxJobs: 100 };

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
    return await super.listChangedFiles(...args);
  }
}

class SlowJobs extends ModelJobService {
  readonly #clock: HeldClock;
  /** How long each list but the first one takes. */
  laterMs = 0;

  constructor(clock: HeldClock) {
    super();
    this.#clock = clock;
  }

  override async listJobs(signal?: AbortSignal) {
    if (this.lists > 0 && signal !== undefined) await sleep(this.#clock, this.laterMs, signal);
    return await super.listJobs();
  }
}

/** Many jobs that ended, and one that runs. */
async function many() {
  const clock = new HeldClock();
  const jobService = new SlowJobs(clock);
  const ended = { endTime: at(clock.now() - 1_000) };
  for (let id = 100; id < 100 + FINISHED; id++)
    jobService.set(jobOf(String(id), 'Finished', { ...ended, tasks: tasksOf(`9${id}`) }));
  jobService.set(jobOf('700', 'Running', { tasks: tasksOf('9700') }));
  const remote = new SlowRemote(clock);
  const { agent, store } = await startAgent(remote, { clock, jobService });
  const start = () => agent.start([], ALL);
  return { clock, jobService, remote, store, start };
}

it('a running job is polled again and again while many jobs that are over wait for their first polls', async () => {
  const { clock, remote, start } = await many();
  start();
  await clock.passUntil('first polls of all', () => remote.polls.size === FINISHED + 1);
  const times = [...(remote.polls.get('700' as JobId) ?? []), clock.monotonic()];
  const gaps = times.map((time, index) => time - (times[index - 1] ?? 0));
  expect(Math.max(...gaps)).toBeLessThan(MAX_GAP_MS);
});

it('the list that names new jobs of the user also reports their tasks and states', async () => {
  const { clock, jobService, remote, store, start } = await many();
  jobService.laterMs = 60 * 60_000;
  start();
  await clock.passUntil('polls of the running job', () => remote.polls.has('700' as JobId), 60_000);
  expect(store.jobInformation.get('700' as JobId)?.information.state).toBe('Running');
});
