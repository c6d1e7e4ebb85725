/** A user with many jobs, and an agent that is to follow all of them. */
import fs from 'node:fs';
import type { JobDescription } from '../../simulator/control.ts';
import { taskOf } from './e2e-job.ts';
import { Place } from './e2e-place.ts';
import type { SandboxService } from './e2e-sandbox.ts';

type Context = Parameters<typeof Place.make>[0];

/** Of a job that every hour of its life is asked about, for the agent has many. */
const SECTIONS = { poll: { minIntervalSeconds: 0.5, maxIntervalSeconds: 5 }, results: { enabled: false } };

/** A sandbox that tells of jobs, and a configuration for it. */
export async function placeOfUser(context: Context) {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  const configure = (sections = {}) =>
    place.configure(sandbox, { service: { jobsUrl: sandbox.jobsUrl }, ...SECTIONS, ...sections });
  configure();
  /** Ids of the jobs that are followed, in the order of their numbers. */
  const followed = async () => (await place.status()).jobs.map(({ jobId }) => jobId);
  return { place, sandbox, configure, followed };
}

/** Jobs of one task whose stdout has a line; those that ended did so `ageSeconds` ago. */
export async function submitJobs(
  sandbox: SandboxService,
  count: number,
  { name = 'heat', ended = false, ageSeconds = 0 } = {},
) {
  const jobs: JobDescription[] = [];
  for (let index = 0; index < count; index++) {
    const job = await sandbox.submit({ name: `${name}-${index}`, tasks: [{}], ageSeconds });
    fs.writeFileSync(taskOf(job).files.stdout, `${job.jobId}\n`);
    if (ended) await sandbox.change(job.jobId, 'finish');
    jobs.push(job);
  }
  return jobs;
}

export const idsOf = (jobs: readonly JobDescription[]) => jobs.map(({ jobId }) => jobId);
