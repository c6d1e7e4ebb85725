/** The order in which jobs that are found together are polled first. */
import { expect, it } from 'vitest';
import type { JobId } from '../../../src/job.ts';
import type { Store } from '../../../src/store/store.ts';
import { startAgent } from '../../support/composed-agent.ts';
import { HeldClock } from '../../support/held-clock.ts';
import { at, jobOf, ModelJobService, ModelRemote, tasksOf } from '../../support/model-remote.ts';

const FINISHED = 60;
/** Among the first are jobs whose next poll was due when their tasks were found. */
const FEW = 6;

/** Records which jobs are polled, and which ones before they are read for notifications. */
class RecordingRemote extends ModelRemote {
  readonly polled = new Set<JobId>();
  readonly read = new Set<JobId>();
  readonly unread = new Set<JobId>();

  override async readParts(...args: Parameters<ModelRemote['readParts']>) {
    this.polled.add(args[0]);
    if (!this.read.has(args[0])) this.unread.add(args[0]);
    return await super.readParts(...args);
  }
}

it('running jobs are polled before many finished ones, also when the agent starts again', async () => {
  const clock = new HeldClock();
  const jobService = new ModelJobService();
  const ids = Array.from({ length: FINISHED }, (_, index) => 100 + index);
  const ended = { endTime: at(clock.now() - 1_000) };
  for (const id of ids) jobService.set(jobOf(String(id), 'Finished', { ...ended, tasks: tasksOf(`9${id}`) }));
  for (const id of ['700', '701']) jobService.set(jobOf(id, 'Running', { tasks: tasksOf(`9${id}`) }));
  const remote = new RecordingRemote();
  const catchUp = async ({ jobs }: Store) => {
    for (const { jobId } of jobs.all()) remote.read.add(jobId);
  };
  const { agent, restart } = await startAgent(remote, { clock, jobService, catchUp });
  agent.start([], { include: ['**'], exclude: [], maxAgeMs: 60_000, maxJobs: 100 });
  await clock.passUntil('polls of all', () => remote.polled.size === FINISHED + 2);
  expect([...remote.polled].slice(0, FEW)).toEqual(expect.arrayContaining(['700', '701']));
  remote.polled.clear();
  remote.read.clear();
  await restart();
  await clock.passUntil('polls of all again', () => remote.polled.size === FINISHED + 2);
  expect([...remote.polled].slice(0, FEW)).toEqual(expect.arrayContaining(['700', '701']));
  // A kill after the first poll loses no event of a job that was read before.
  expect([...remote.unread]).toEqual([]);
});
