/**
 * Which listed files may be a live file: the listing names files by paths that say neither which task nor which live
 * file they are (docs/servers.md 1.7, 4.2).
 */
import { asJobtailError } from '../../../errors.ts';
import type { JobId } from '../../../job.ts';
import { endsWith, partsOf } from '../../../path-parts.ts';
import { inSlices } from '../../../slices.ts';
import type { Remote } from '../../ports.ts';

/** No system has a longer one. */
const LONGEST_PATH = 4_096;

/** The listing; a service that refuses it lists nothing. */
export async function listedFiles(remote: Remote, jobId: JobId, signal: AbortSignal): Promise<readonly string[]> {
  try {
    return await remote.listChangedFiles(jobId, signal);
  } catch (error) {
    if (asJobtailError(error).policy.isRefusal) return [];
    throw error;
  }
}

/** The listed names that may be a live file: those that end in the path the service gave with its text. */
export async function namesThatMayBe(listed: readonly string[], relativePath: string | null): Promise<string[]> {
  const wanted = partsOf(relativePath ?? '');
  const last = wanted.at(-1);
  if (last === undefined) return [];
  const fitting: string[] = [];
  for await (const name of inSlices(listed)) {
    if (name.length <= LONGEST_PATH && name.endsWith(last) && endsWith(partsOf(name), wanted)) fitting.push(name);
  }
  return fitting;
}
