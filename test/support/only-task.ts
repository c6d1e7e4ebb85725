import type { SubmittedJob, SubmittedTask } from '../../simulator/cluster/cluster.ts';

/** The task of a job of the simulated cluster that has one. */
export function onlyTask({ jobId, tasks }: SubmittedJob): SubmittedTask {
  const [task] = tasks;
  if (task === undefined || tasks.length > 1) throw new Error(`job ${jobId} has not exactly one task`);
  return task;
}
