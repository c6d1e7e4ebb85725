/** A job of a sandbox that an agent is to follow by its number alone. */
import type { JobSpec } from '../../simulator/cluster/specs.ts';
import type { SandboxHabits } from '../../simulator/habits.ts';
import { Place } from './e2e-place.ts';

type Context = Parameters<typeof Place.make>[0];

const FILES = ['stdout', 'stderr', 'log', 'progress'];

interface ByNumber {
  readonly habits?: Partial<SandboxHabits>;
  readonly spec?: JobSpec;
  /** Without the service that tells of jobs. */
  readonly unreported?: boolean;
}

/** A place with a sandbox, a configuration for it, and a job of two tasks unless `spec` says otherwise. */
export async function placeWithJob(
  context: Context,
  { habits = {}, spec = { tasks: [{}, {}] }, unreported = false }: ByNumber = {},
) {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  await sandbox.setHabits(habits);
  const job = await sandbox.submit(spec);
  const { jobsUrl } = sandbox;
  place.configure(sandbox, { ...(unreported ? {} : { service: { jobsUrl } }), results: { enabled: false } });
  const mirrors = (files = FILES, tasks = job.tasks) =>
    tasks.flatMap(({ taskId }) => files.map((file) => place.mirrorOf(job.jobId, taskId, file)));
  /** Has the agent look at once, which it does for each order. */
  const look = () => place.agent('watch', job.jobId, '--no-wait');
  return { place, sandbox, job, mirrors, look };
}
