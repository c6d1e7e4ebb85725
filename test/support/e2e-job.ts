/** Jobs of a sandbox that is asked by its control interface: their first task, what the configuration says of them, a quiet one. */
import fs from 'node:fs';
import path from 'node:path';
import type { TestContext } from 'vitest';
import type { JobDescription } from '../../simulator/control.ts';
import { NOBODY, Place } from './e2e-place.ts';

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

/** The same, in a place of its own. */
export async function quietJob(context: Parameters<typeof Place.make>[0]) {
  const place = Place.make(context);
  return { place, ...(await submitQuietJob(place)) };
}

/** A place whose agent is nobody's, with a quiet job; skips the test where that user cannot run the program. */
export async function foreignPlace(context: TestContext) {
  const place = Place.make(context);
  place.giveUpRights(context);
  const set = await submitQuietJob(place);
  fs.chownSync(set.sandbox.passwordFile, NOBODY, NOBODY);
  for (const directory of ['cluster', 'cluster/secrets']) fs.chmodSync(path.join(place.directory, directory), 0o755);
  place.configure(set.sandbox, { watch: [requestOf(set.job)], results: { enabled: false } });
  return { place, ...set };
}
