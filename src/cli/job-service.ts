/** The service that tells of jobs, for one command. */
import type { JobService } from '../agent/ports.ts';
import type { Config } from '../config/config.ts';
import { tellsOfJobs } from '../config/service-address.ts';
import { commandLog } from '../daemon/command-log.ts';
import { connect } from '../daemon/connection.ts';
import { JobtailError } from '../errors.ts';
import type { JobInformation } from '../job-information.ts';
import { untilStopped } from './process.ts';

/** Without an address, nobody tells which jobs there are. @throws JobtailError config */
export function requireJobsUrl({ service, file }: Config): void {
  if (tellsOfJobs(service)) return;
  throw new JobtailError('config', `service.jobsUrl is not set in ${file}: nobody tells which jobs there are`, {
    hint: 'set it to the address of JobManagementWs (agent check looks for it beside service.fileTransferUrl)',
  });
}

/** What is told of all jobs of the user. @throws JobtailError */
export async function listJobs(config: Config): Promise<readonly JobInformation[]> {
  requireJobsUrl(config);
  const { jobService, close } = await connect(config, commandLog());
  try {
    return await untilStopped((signal) => listOf(jobService, signal));
  } finally {
    await close();
  }
}

const listOf = async (service: JobService | null, signal: AbortSignal) => (await service?.listJobs(signal)) ?? [];
