/** One look for the tasks of a job, for commands that do a pass by themselves: a running agent has looked before. */
import { BatchLimit } from '../agent/poll/batch.ts';
import type { Log } from '../agent/ports.ts';
import { keepTold } from '../agent/tasks/found.ts';
import { TaskSearch } from '../agent/tasks/task-search.ts';
import type { Connection } from '../daemon/connection.ts';
import { asJobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import type { Store } from '../store/store.ts';
import { systemClock } from '../system/clock.ts';

interface FindTasksOptions extends Pick<Connection, 'remote' | 'jobService'> {
  readonly store: Store;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** Keeps what it finds; nothing if the order of the job names its tasks. @throws JobtailError of the file transfer */
export async function findTasks(jobId: JobId, options: FindTasksOptions): Promise<void> {
  const { store, log, remote, jobService, signal } = options;
  if (store.taskSearches.get(jobId) === undefined) return;
  const told = await toldTasks(jobId, options);
  if (told.length > 0) await keepTold(jobId, told, { store, log, clock: systemClock });
  else {
    const parts = { store, log, clock: systemClock, habits: store.habits, isToldOfJobs: jobService !== null };
    const search = new TaskSearch(jobId, { ...parts, batchLimit: new BatchLimit(store.habits) });
    await search.look({ remote, isListed: false, signal });
  }
  if (store.taskSearches.knownTasks(jobId).length > 0) return;
  const hint = `if it has some: agent watch ${jobId} --task ID`;
  log.warn({ jobId, hint }, `no task of job ${jobId} is found, so there are no live files to be copied`);
}

/** None where nobody tells of them, or who does cannot be asked now: they are searched for then. */
async function toldTasks(jobId: JobId, { jobService, log, signal }: FindTasksOptions) {
  try {
    const job = await jobService?.getJob(jobId, signal);
    return job?.tasks.map(({ id }) => id) ?? [];
  } catch (thrown) {
    const { code, message, hint } = asJobtailError(thrown);
    if (code === 'aborted') throw thrown;
    log.warn({ jobId, code, hint }, `nobody tells of job ${jobId}: ${message}`);
    return [];
  }
}
