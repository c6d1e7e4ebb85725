/** Removes secrets from the reports of a job service, which may quote them. */
import type { JobService } from '../agent/ports.ts';
import type { JobInformation, JobTime } from '../job-information.ts';
import type { Secrets } from '../redact.ts';
import { inSlices } from '../slices.ts';

export function hidingSecrets(service: JobService, secrets: Secrets): JobService {
  return {
    getJob: async (jobId, signal) => hidden(await service.getJob(jobId, signal), secrets),
    listJobs: async (signal) => {
      const jobs: JobInformation[] = [];
      for await (const job of inSlices(await service.listJobs(signal))) jobs.push(hidden(job, secrets));
      return jobs;
    },
  };
}

function hidden(job: JobInformation, secrets: Secrets): JobInformation {
  const text = (told: string | null) => (told === null ? null : secrets.hide(told));
  const time = (told: JobTime | null) => (told === null ? null : { ...told, text: secrets.hide(told.text) });
  return {
    ...job,
    name: text(job.name),
    state: text(job.state),
    creationTime: time(job.creationTime),
    submitTime: time(job.submitTime),
    startTime: time(job.startTime),
    endTime: time(job.endTime),
    tasks: job.tasks.map((task) => ({
      ...task,
      name: text(task.name),
      state: text(task.state),
      startTime: time(task.startTime),
      endTime: time(task.endTime),
      errorMessage: text(task.errorMessage),
    })),
  };
}
