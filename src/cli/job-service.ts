/** The job service, for one command. */
import { type Config, hasJobService } from '../config/config.ts';
import { connect } from '../daemon/connection.ts';
import { asJobtailError, JobtailError } from '../errors.ts';
import type { JobId } from '../job.ts';
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
const MAX_CHECK_MS = 10_000;

export const isNoJob = (config: Config, jobId: JobId): Promise<boolean> =>
  untilStopped((signal) => isReportedAsNone(config, jobId, signal));

/** False if the service reports no jobs or refuses: another user's job may look like a lost session. */
async function isReportedAsNone(config: Config, jobId: JobId, signal: AbortSignal): Promise<boolean> {
  if (!hasJobService(config.service)) return false;
  const limit = new LinkedAbort(signal).within(MAX_CHECK_MS);
  try {
    await reportsOf(config, jobId, limit.signal);
    return false;
  } catch (thrown) {
    signal.throwIfAborted();
    const { code, message } = asJobtailError(thrown);
    const { noSuchJob, foreignJob } = FAILURES;
    const isNamed = noSuchJob.sign.test(message) || foreignJob.sign.test(message);
    return code === 'not-found' || (code === 'fault' && message.includes(jobId) && isNamed);
  } finally {
    limit.release();
  }
}

/** A mistyped number would be requested forever. @throws JobtailError job-unknown */
export async function requireJob(config: Config, jobId: JobId, signal: AbortSignal): Promise<void> {
  if (!(await isReportedAsNone(config, jobId, signal))) return;
  throw new JobtailError('job-unknown', `the service has no job ${jobId} of this user`, {
    hint: 'check the number: agent jobs lists the jobs',
  });
}
