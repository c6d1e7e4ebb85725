/** The jobs of a recorded state: the same when it is recorded and when it is taken up by a newer program. */
import path from 'node:path';
import type { JobDescription } from '../../simulator/control.ts';
import type { Place } from '../support/e2e-place.ts';
import type { SandboxService } from '../support/e2e-sandbox.ts';

/** 701 grows, and is watched by the configuration; 702 was unwatched. */
export const JOBS = ['701', '702'].map((jobId) => ({ jobId, tasks: [{ taskId: `9${jobId}` }] }));

/** Where the first task of a job writes: a live file by its name, or another one beside them. */
export function remoteFile(job: JobDescription | undefined, file: string): string {
  const files = job?.tasks[0]?.files;
  if (files === undefined) throw new Error('the job has no task');
  return file in files ? files[file as keyof typeof files] : path.join(path.dirname(files.stdout), file);
}

export const configOf = (place: Place, sandbox: SandboxService) =>
  place.configText(sandbox, {
    watch: JOBS.slice(0, 1).map(({ jobId, tasks }) => ({ job: jobId, tasks: tasks.map(({ taskId }) => taskId) })),
  });
