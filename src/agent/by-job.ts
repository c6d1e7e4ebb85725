/** What is remembered from visit to visit of things within jobs (live files, mostly): a job is forgotten as a whole. */
import type { JobId } from '../job.ts';

export class ByJob<T> {
  readonly #jobs = new Map<JobId, Map<string, T>>();

  get(jobId: JobId, name: string): T | undefined {
    return this.#jobs.get(jobId)?.get(name);
  }

  set(jobId: JobId, name: string, value: T): void {
    const job = this.#jobs.get(jobId);
    if (job === undefined) this.#jobs.set(jobId, new Map([[name, value]]));
    else job.set(name, value);
  }

  delete(jobId: JobId, name: string): void {
    const job = this.#jobs.get(jobId);
    if (job?.delete(name) && job.size === 0) this.#jobs.delete(jobId);
  }

  forgetJob(jobId: JobId): void {
    this.#jobs.delete(jobId);
  }
}
