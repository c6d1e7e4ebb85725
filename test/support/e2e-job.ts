/** Jobs of a sandbox that another process is: their first task, what the configuration says of them, a quiet one. */
import type { JobDescription } from '../../src/sandbox/control.ts';
import type { Place } from './e2e-place.ts';

/** The first task of a job. */
export function taskOf({ jobId, tasks }: JobDescription): JobDescription['tasks'][number] {
  const [task] = tasks;
  if (task === undefined) throw new Error(`job ${jobId} has no task`);
  return task;
}

/** An entry of `watch` in the configuration: the job with all its tasks. */
export const orderOf = ({ jobId, tasks }: JobDescription) => ({
  job: jobId,
  tasks: tasks.map(({ taskId }) => taskId),
});

/** A sandbox with a job of one task that runs nothing: only the test writes its files. */
export async function submitQuietJob(place: Place) {
  const sandbox = await place.startSandbox();
  const job = await sandbox.submit({ tasks: [{}] });
  const task = taskOf(job);
  return { sandbox, job, task, mirror: place.mirrorOf(job.jobId, task.taskId, 'stdout') };
}
