/** The job service, and the search for the tasks of one job, for one command. */

import type { Log } from '../agent/ports/host.ts';
import { saveReported, TaskSearch } from '../agent/tasks/task-search.ts';
import { type Config, hasJobService } from '../config/config.ts';
import { connect, type Services } from '../daemon/connection.ts';
import { asJobtailError, EXIT, JobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
import type { JobInformation } from '../job-information.ts';
import { LinkedAbort } from '../linked-abort.ts';
import { FOREIGN_JOB } from '../remote/refusals.ts';
import type { Store } from '../store/store.ts';
import { systemClock } from '../system/clock.ts';
import { askRunningAgent } from './ask-agent.ts';
import { commandLog, untilStopped } from './process.ts';

export function requireJobsUrl({ service, file }: Config): void {
  if (hasJobService(service)) return;
  throw new JobtailError('config', `service.jobsUrl is not set in ${file}: the agent cannot list jobs`, {
    hint: 'set it to the address of JobManagementWs (agent check searches for it next to service.fileTransferUrl)',
  });
}

export async function listJobs(config: Config): Promise<readonly JobInformation[]> {
  requireJobsUrl(config);
  return await untilStopped((signal) => reportsOf(config, null, signal));
}

/** About one job, or all (null): by the running agent, whose limits they share, else by this process. */
async function reportsOf(config: Config, jobId: JobId | null, signal: AbortSignal): Promise<readonly JobInformation[]> {
  const request = { kind: 'report', jobId } as const;
  const answer = await askRunningAgent<{ readonly jobs: readonly JobInformation[] }>(config, request, signal);
  return answer?.jobs ?? (await askService(config, jobId, signal));
}

async function askService(
  config: Config,
  jobId: JobId | null,
  signal: AbortSignal,
): Promise<readonly JobInformation[]> {
  const { jobService, close } = await connect(config, commandLog());
  try {
    if (jobService === null) return [];
    return jobId === null ? await jobService.listJobs(signal) : [await jobService.getJob(jobId, signal)];
  } finally {
    await close();
  }
}

/** After this time, the number is assumed to be that of a job. */
const MAX_CHECK_MS = 10_000;
/** The words of every release for an unknown job (docs/dev/rest.md 4.2), also in SOAP faults. */
const NO_SUCH_JOB = /\b(?:does not exist|was not found)\b/;

/** False if the service reports no jobs or refuses: another user's job may look like a lost session. */
export async function isNoJob(config: Config, jobId: JobId): Promise<boolean> {
  if (!hasJobService(config.service)) return false;
  return await untilStopped(async (signal) => {
    const limit = new LinkedAbort(signal).within(MAX_CHECK_MS);
    try {
      await reportsOf(config, jobId, limit.signal);
      return false;
    } catch (thrown) {
      signal.throwIfAborted();
      const { code, message } = asJobtailError(thrown);
      return (
        code === 'not-found' ||
        (code === 'fault' && message.includes(jobId) && (NO_SUCH_JOB.test(message) || FOREIGN_JOB.test(message)))
      );
    } finally {
      limit.release();
    }
  });
}

interface FindTasksOptions extends Services {
  readonly store: Store;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** Stores the found tasks, unless the request for the job names its tasks. @throws JobtailError of the file transfer */
export async function findTasks(jobId: JobId, options: FindTasksOptions): Promise<void> {
  const { store, log, remote, jobService, signal } = options;
  if (store.taskSearches.get(jobId) === undefined) return;
  const reported = await reportedTasks(jobId, options);
  if (reported.length > 0) await saveReported(jobId, reported, { store, log, clock: systemClock });
  else {
    const { capabilities } = store;
    const search = new TaskSearch(jobId, {
      ...{ store, log, clock: systemClock, capabilities, remote, hasJobService: jobService !== null },
      batchLimit: { files: Number.POSITIVE_INFINITY },
    });
    await search.probe(false, signal);
  }
  if (store.taskSearches.knownTasks(jobId).length > 0) return;
  const hint = `if the job has tasks, run agent watch ${jobId} --task ID`;
  log.warn({ jobId, hint }, 'no task found, no live files to copy');
}

/** Empty without an available job service: then the tasks are probed. */
async function reportedTasks(jobId: JobId, { jobService, log, signal }: FindTasksOptions) {
  try {
    const job = await jobService?.getJob(jobId, signal);
    return job?.tasks.map(({ id }) => id) ?? [];
  } catch (thrown) {
    const { code, message, hint, policy } = asJobtailError(thrown);
    // The file transfer has the same sign-in.
    if (code === 'aborted' || policy.exitCode === EXIT.signIn) throw thrown;
    log.warn({ jobId, code, err: message, hint }, 'job service failed');
    return [];
  }
}
