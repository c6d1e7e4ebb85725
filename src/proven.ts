/** What of a job is proven to be here as the server has it: the one definition, for every command, event and page. */
import { byTaskAndFile, type JobId, type LiveFileKey } from './job.ts';
import { countOf } from './numbers.ts';

/** The last comparison of all bytes of a mirror with the raw bytes. */
export interface Comparison {
  /** Bytes of the mirror, if they are all bytes of the remote file; null after any other outcome, or a change. */
  readonly verified: number | null;
  /** Why it did not verify the mirror. */
  readonly unverified: string | null;
  /** Whether it was made before the end of the job: then it proves nothing about the last state. */
  readonly early: boolean;
}

interface ComparedFile extends Comparison, LiveFileKey {
  readonly position: number;
  readonly error: { readonly message: string } | null;
}

interface Counts {
  /** Names that the service ever listed. */
  readonly listed: number;
  readonly failed: number;
  readonly inFlux: number;
  readonly queued: number;
}

export const isVerified = ({ verified, position }: Pick<ComparedFile, 'verified' | 'position'>): boolean =>
  verified === position;

/** Undefined: all bytes were compared after the end of the job, and are equal; also of a file without bytes. */
export function reasonAgainst(file: ComparedFile): string | undefined {
  const { error, verified, unverified, early } = file;
  if (error !== null) return error.message;
  if (isVerified(file)) return early ? 'verified before the end of the job, and not after it' : undefined;
  return unverified ?? (verified === null ? 'not verified' : 'it grew after it was verified');
}

/** Used where a job has no live files: there is nothing that could be proven. */
export const NO_LIVE_FILES = 'no task of the job was found, so no live file is here';

/** Used where results are requested: the listing does not have what is known to be there, so it proves nothing. */
export const NOTHING_LISTED = 'results: the service lists no file of the job, although it has live files';

const NOT_FOLLOWED = { error: null, results: true };

interface FollowedFile {
  readonly error: { readonly message: string } | null;
  /** Whether its results are requested. */
  readonly results: boolean;
}

/** A reason for each live file, and for the results that are not complete. Empty: the job is proven. */
export function reasonsAgainst(
  { error, results: areResultsWanted }: FollowedFile,
  files: readonly ComparedFile[],
  results: Counts,
): string[] {
  const live = [...files].sort(byTaskAndFile).flatMap((file) => {
    const reason = reasonAgainst(file);
    return reason === undefined ? [] : [`task ${file.taskId} ${file.file}: ${reason}`];
  });
  const counts = [
    [results.failed, 'not fetched, or refused'],
    [results.inFlux, 'changed while it was fetched'],
    [results.queued, 'not fetched yet'],
  ] as const;
  const isHidden = results.listed === 0 && files.some(({ position }) => position > 0);
  return [
    ...(error === null ? [] : [`no last pass: ${error.message}`]),
    ...(files.length === 0 ? [NO_LIVE_FILES] : live),
    ...(areResultsWanted && isHidden ? [NOTHING_LISTED] : []),
    ...counts.flatMap(([count, what]) =>
      count > 0 && areResultsWanted ? [`${countOf(count, 'result')}: ${what}`] : [],
    ),
  ];
}

/** The part of the store that is asked. */
interface StoredJobs {
  readonly jobs: { get(jobId: JobId): FollowedFile | undefined };
  readonly liveFiles: { ofJob(jobId: JobId): readonly ComparedFile[] };
  readonly results: { counts(jobId: JobId): Counts };
}

export function unprovenIn({ jobs, liveFiles, results }: StoredJobs, jobId: JobId): string[] {
  return reasonsAgainst(jobs.get(jobId) ?? NOT_FOLLOWED, liveFiles.ofJob(jobId), results.counts(jobId));
}
