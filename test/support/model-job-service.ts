/** A service that tells of jobs, in memory. */
import type { JobService } from '../../src/agent/ports/server.ts';
import { JobtailError } from '../../src/errors.ts';
import type { JobId, TaskId } from '../../src/job.ts';
import { type JobInformation, jobTimeOf } from '../../src/job-information.ts';

/** A job of which nothing is reported but this. */
export function jobOf(id: string, state: string | null, more: Partial<JobInformation> = {}): JobInformation {
  const times = { creationTime: null, submitTime: null, startTime: null, endTime: null };
  return { id: id as JobId, name: `job ${id}`, state, ...times, tasks: [], ...more };
}

/** Tasks of which only the ids are reported. */
export function tasksOf(...ids: readonly string[]): JobInformation['tasks'] {
  const nothing = { name: null, state: null, startTime: null, endTime: null, errorMessage: null };
  return ids.map((id) => ({ id: id as TaskId, ...nothing }));
}

export const at = (ms: number) => jobTimeOf(new Date(ms).toISOString());

export class ModelJobService implements JobService {
  readonly jobs = new Map<string, JobInformation>();
  /** Jobs that no list names. */
  readonly unlisted = new Set<string>();
  /** What every call fails with. */
  failure: JobtailError | undefined;
  lists = 0;
  questions = 0;

  set(job: JobInformation): void {
    this.jobs.set(job.id, job);
  }

  async listJobs(): Promise<readonly JobInformation[]> {
    this.lists += 1;
    if (this.failure !== undefined) throw this.failure;
    return [...this.jobs.values()].filter(({ id }) => !this.unlisted.has(id));
  }

  async getJob(jobId: JobId): Promise<JobInformation> {
    this.questions += 1;
    if (this.failure !== undefined) throw this.failure;
    const job = this.jobs.get(jobId);
    if (job === undefined) throw new JobtailError('not-found', `there is no job ${jobId}`);
    return job;
  }
}
