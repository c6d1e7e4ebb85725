/** Jobs of a sandbox that is asked by its control interface: their first task, what the configuration says of them, a quiet one. */
import fs from 'node:fs';
import type { JobDescription } from '../../simulator/control.ts';
import { Place } from './e2e-place.ts';

/** The first task of a job. */
export function taskOf({ jobId, tasks }: JobDescription): JobDescription['tasks'][number] {
  const [task] = tasks;
  if (task === undefined) throw new Error(`job ${jobId} has no task`);
  return task;
}

/** An entry of `watch` in the configuration: the job with all its tasks. */
export const requestOf = ({ jobId, tasks }: JobDescription) => ({
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

/** A place with a quiet job whose stdout holds `content`, and an agent that has mirrored it and goes on. */
export async function mirroredJob(context: Parameters<typeof Place.make>[0], content: Buffer) {
  const place = Place.make(context);
  const { sandbox, job, task, mirror } = await submitQuietJob(place);
  fs.writeFileSync(task.files.stdout, content);
  place.configure(sandbox, { watch: [requestOf(job)], results: { enabled: false } });
  const agent = await place.run();
  await place.mirrored(job, 'stdout');
  return { place, sandbox, job, stdout: task.files.stdout, mirror, agent };
}
