/** The two operations of JobManagementWs (docs/interface.md 10) over SOAP 1.1 or 1.2. */
import type { JobService } from '../../agent/ports.ts';
import { JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import type { JobInformation } from '../../job-information.ts';
import { JobRecords, MAX_JOBS_BYTES } from '../content/job-records.ts';
import { SoapCalls, type SoapCallsOptions } from './calls.ts';
import { unexpected } from './faults.ts';

const TASK = 'SubmittedTaskInfoExt';
export class SoapJobService implements JobService {
  readonly #calls: SoapCalls;

  constructor(options: Omit<SoapCallsOptions, 'service' | 'maxSmallAnswerBytes'>) {
    this.#calls = new SoapCalls({ ...options, service: 'JobManagementWs', maxSmallAnswerBytes: MAX_JOBS_BYTES });
  }

  async getJob(jobId: JobId, signal: AbortSignal): Promise<JobInformation> {
    const operation = 'GetCurrentInfoForJob';
    const lifted = new JobRecords({ task: TASK, asked: jobId });
    await this.#calls.call({ operation, fields: { submittedJobInfoId: jobId }, lifted, signal });
    const [job] = lifted.jobs;
    if (job === undefined) {
      throw new JobtailError('not-found', `the service has no job ${jobId}`, {
        hint: 'check the job id, and whether the job belongs to auth.username',
      });
    }
    if (job.id !== jobId) throw unexpected(operation, `it is about the job ${job.id}`);
    return job;
  }

  async listJobs(signal: AbortSignal): Promise<readonly JobInformation[]> {
    const lifted = new JobRecords({ task: TASK });
    await this.#calls.call({ operation: 'ListJobsForCurrentUser', fields: {}, lifted, bulky: true, signal });
    return lifted.jobs;
  }
}
