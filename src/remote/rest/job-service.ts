/** The two operations of JobManagement over REST, for all of its releases (docs/rest.md 1.2, 3.6). */
import type { JobService } from '../../agent/ports.ts';
import { JobtailError } from '../../errors.ts';
import type { JobId } from '../../job.ts';
import type { JobInformation } from '../../job-information.ts';
import { JobRecords, MAX_JOBS_BYTES } from '../content/job-records.ts';
import { ITEM } from './answer/scanner.ts';
import { RestCalls, type RestCallsOptions } from './calls.ts';
import { JOB_STATES, REQUEST } from './contract.ts';
import { unexpected } from './refusals.ts';
import { JsonNumber } from './requests.ts';
import { requireLifted } from './results.ts';

const STATE_OF = new Map(Object.entries(JOB_STATES).map(([state, number]) => [String(number), state]));

export class RestJobService implements JobService {
  readonly #calls: RestCalls;

  constructor(options: RestCallsOptions) {
    this.#calls = new RestCalls(options);
  }

  async getJob(jobId: JobId, signal: AbortSignal): Promise<JobInformation> {
    const lifted = new JobRecords({ task: ITEM, asked: jobId });
    const answered = await this.#calls.call({
      ...{ operation: 'GetCurrentInfoForJob', lifted, signal },
      members: () => ({ [REQUEST.jobId]: new JsonNumber(jobId) }),
      rule: { path: [], as: 'record' },
      maxBytes: MAX_JOBS_BYTES,
    });
    const [job] = lifted.jobs;
    if (job === undefined) {
      if (answered.kind === 'success' && answered.rest !== null) throw unexpected('it contains no job');
      throw new JobtailError('not-found', `the service has no job ${jobId}`, {
        hint: 'check the job id, and whether the job belongs to auth.username',
      });
    }
    if (job.id !== jobId) throw unexpected(`it is about the job ${job.id}`);
    return inWords(job);
  }

  async listJobs(signal: AbortSignal): Promise<readonly JobInformation[]> {
    const lifted = new JobRecords({ task: ITEM });
    const answered = await this.#calls.call({
      ...{ operation: 'ListJobsForCurrentUser', lifted, bulky: true, signal },
      members: () => ({}),
      rule: { path: [ITEM], as: 'record' },
      maxBytes: MAX_JOBS_BYTES,
    });
    if (answered.kind === 'success') requireLifted(answered.rest);
    return lifted.jobs.map(inWords);
  }
}

function inWords(job: JobInformation): JobInformation {
  const wordOf = (state: string | null) => (state === null ? null : (STATE_OF.get(state) ?? state));
  const tasks = job.tasks.map((task) => ({ ...task, state: wordOf(task.state) }));
  return { ...job, state: wordOf(job.state), tasks };
}
