/** The job service, for one command. */
import { type Config, hasJobService } from '../config/config.ts';
import { connect } from '../daemon/connection.ts';
import { asJobtailError, JobtailError } from '../errors.ts';
import type { JobId, TaskId } from '../job.ts';
import type { JobInformation } from '../job-information.ts';
import { LinkedAbort } from '../linked-abort.ts';
import { FAILURES } from '../remote/rest/releases.ts';
import { askAgent } from './ask-agent.ts';
import { commandLog, untilStopped } from './process.ts';

export function requireJobsUrl({ service, file }: Config): void {
  if (hasJobService(service)) return;
  throw new JobtailError('config', `service.jobsUrl is not set in ${file}: the agent cannot list jobs`, {
    hint: 'set it to the address of JobManagementWs (agent check searches for it next to service.fileTransferUrl)',
  });
}

export async function listJobs(config: Config): Promise<readonly JobInformation[]> {
  return await untilStopped((signal) => reportsOf(config, null, signal));
}

/** About one job, or all (null): by the running agent, whose limits they share, else by this process. */
export async function reportsOf(
  config: Config,
  jobId: JobId | null,
  signal: AbortSignal,
): Promise<readonly JobInformation[]> {
  requireJobsUrl(config);
  const request = { kind: 'report', jobId } as const;
  const answer = await askAgent<{ readonly jobs: readonly JobInformation[] }>(config, request, signal);
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
export const MAX_CHECK_MS = 10_000;

export const isNoJob = async (config: Config, jobId: JobId): Promise<boolean> =>
  (await untilStopped((signal) => reportOf(config, jobId, signal))) === 'none';

/** Undefined if the service reports no jobs or refuses: another user's job may look like a lost session. */
async function reportOf(
  config: Config,
  jobId: JobId,
  signal: AbortSignal,
): Promise<JobInformation | 'none' | undefined> {
  if (!hasJobService(config.service)) return undefined;
  const limit = new LinkedAbort(signal).within(MAX_CHECK_MS);
  try {
    return (await reportsOf(config, jobId, limit.signal))[0];
  } catch (thrown) {
    signal.throwIfAborted();
    const { code, message } = asJobtailError(thrown);
    const { noSuchJob, foreignJob } = FAILURES;
    const isNamed = noSuchJob.sign.test(message) || foreignJob.sign.test(message);
    const isNone = code === 'not-found' || (code === 'fault' && message.includes(jobId) && isNamed);
    return isNone ? 'none' : undefined;
  } finally {
    limit.release();
  }
}

export interface NamedJob {
  readonly jobId: JobId;
  /** Null: all of the job. */
  readonly tasks: readonly TaskId[] | null;
}

/** A mistyped number would be requested forever, and its files be verified as empty. @throws JobtailError job-unknown, not-found */
export async function requireJob(config: Config, { jobId, tasks }: NamedJob, signal: AbortSignal): Promise<void> {
  const report = await reportOf(config, jobId, signal);
  const hint = 'check the number: agent jobs lists the jobs';
  if (report === 'none')
    throw new JobtailError('job-unknown', `the service has no job ${jobId} of this user`, { hint });
  const reported = report?.tasks ?? [];
  const missing = tasks?.find((task) => reported.every(({ id }) => id !== task));
  if (missing === undefined || reported.length === 0) return;
  throw new JobtailError('not-found', `the service has no task ${missing} of job ${jobId}`, { hint });
}
