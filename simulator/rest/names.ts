/**
 * The names of a job's files: as a release lists them, and as it requires them in a request for a whole file
 * (docs/dev/rest.md 3.4).
 */

import { join } from 'node:path';
import type { Release } from '../../src/remote/rest/releases.ts';
import type { SubmittedJob } from '../cluster/cluster.ts';
import type { ListedFile } from '../cluster/job-files.ts';

/** As listed. */
export function listedName({ specificationId, subdirectory, path }: ListedFile, { names }: Release): string {
  if (names === 'no-subdirectory') return `/${specificationId}/${path}`;
  return names === 'slashes'
    ? `${specificationId}/${subdirectory}//${path}`
    : join('/', specificationId, subdirectory, path);
}

/**
 * What a name that is asked for begins with after the parts that the release wants there; undefined if these are not
 * there.
 */
export function askedName(given: string, job: SubmittedJob, release: Release): string | undefined {
  const [form, other] = release.pathForms;
  const name = release.slash === 'optional' && !given.startsWith('/') ? `/${given}` : given;
  if (!/^\/(?!\/)/.test(name)) return undefined;
  const [, first = '', second] = name.split('/');
  const isTask = (id: string | undefined) => job.tasks.some(({ taskId }) => taskId === id);
  // A job may have the id of a task, too.
  const isOfJob = first === job.jobId && (form === 'below the job' || isTask(second) || !isTask(first));
  if (form === 'listed' && (other === undefined || (isTask(first) && !isOfJob))) return name;
  return isOfJob ? name.slice(1 + first.length) : undefined;
}
