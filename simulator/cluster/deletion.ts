/** What deleting a job leaves behind, by release (docs/dev/rest.md 3.6). */
import { cp, mkdir, rm } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import type { Release } from '../rest/releases.ts';
import type { SubmittedJob } from './cluster.ts';

/** Deletes a job; what runs of it is ended. */
export async function deleteJob(job: SubmittedJob, deletion: Release['deletion']): Promise<void> {
  await job.end('Canceled');
  if (deletion === 'archive') await archiveJob(job);
  await rm(job.directory, { recursive: true, force: true });
  if (deletion === 'archive') await cp(archiveOf(job), job.directory, { recursive: true });
  if (deletion !== 'unnoticed') job.reportedState = 'Deleted';
}

/**
 * Copies stdout and stderr into the archive, unless they are there: what is left of a deletion that was refused, too, as
 * that of a job that runs.
 */
export async function archiveJob(job: SubmittedJob): Promise<void> {
  const archive = archiveOf(job);
  await mkdir(archive, { recursive: true });
  for (const { stdout, stderr } of job.tasks.map(({ files }) => files)) {
    for (const path of [stdout, stderr]) {
      await cp(path, join(archive, relative(job.directory, path)), { force: false }).catch(ignoreMissing);
    }
  }
}

const archiveOf = ({ jobId, directory }: SubmittedJob) => join(dirname(dirname(directory)), 'archive', jobId);

function ignoreMissing(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
}
