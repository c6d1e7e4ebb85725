/** The rows of the store. Times are milliseconds since 1970, lengths are bytes. */
import type { ErrorCode } from '../errors.ts';
import type { JobId, LiveFileKey, LiveFileName, TaskId } from '../job.ts';
import type { JobInformation } from '../job-information.ts';
import type { KeptMismatch } from '../mismatch.ts';
import type { Comparison } from '../proven.ts';

/** Why a job is followed: by the configuration, by a command, or by the rule for all jobs of the user. */
export type JobSource = 'config' | 'command' | 'mine';

/**
 * The state of a job in the agent, not the job state of the middleware. watched: followed. ending: `unwatch` was
 * requested, the last pass is not complete. ended: no longer followed. settled: over, or quiet for its settling time,
 * and its last pass succeeded.
 */
export type WatchState = 'watched' | 'ending' | 'ended' | 'settled';

/** A stored failure. JobtailError messages contain no secrets (src/redact.ts). */
export interface StoredError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly hint: string | null;
  readonly since: number;
  readonly retryAt?: number;
}

export interface JobRow {
  readonly jobId: JobId;
  readonly source: JobSource;
  readonly state: WatchState;
  readonly results: boolean;
  readonly settleAfterMs: number | null;
  /** A running job without growth for this time is stalled; null: the time of the configuration. */
  readonly stallAfterMs: number | null;
  readonly watchedAt: number;
  /** The job state in which a list had it before it was watched, if it was not over; null: none is known. */
  readonly seenState: string | null;
  readonly polledAt: number | null;
  readonly grownAt: number | null;
  /** Start of the time without growth; null while the job is not stalled. */
  readonly stalledAt: number | null;
  /** Entries of responses that were refused, in all watches of the job. */
  readonly refused: number;
  readonly failures: number;
  readonly error: StoredError | null;
  /** Grows with every command and change of state, not with polls. */
  readonly revision: number;
}

/** The committed state of a live mirror. `position`, the committed offset, never exceeds what is flushed. */
export interface LiveFileRow extends LiveFileKey, Comparison {
  readonly jobId: JobId;
  readonly position: number;
  readonly generation: number;
  /** CRC-32 of all bytes before the position; null if an earlier version committed them, or they were cut. */
  readonly checksum: number | null;
  /** Inode and time of the mirror after the last write of the agent; without the time, it counts as modified. */
  readonly inode: string | null;
  readonly modifiedNs: string | null;
  /** The last step of a rotation under way. */
  readonly rotation: 'copying' | 'copied' | null;
  /** During a rotation in a fleet: distinguishes the copy from those of other owners. */
  readonly copyMark: string | null;
  /** The path that the service sent with the text, and the listed name proven to have its raw bytes. */
  readonly relativePath: string | null;
  readonly listedName: string | null;
  readonly grownAt: number | null;
  /** The last mismatches, in order. */
  readonly mismatches: readonly KeptMismatch[];
  readonly error: StoredError | null;
}

/**
 * listed: not fetched yet. synced: as the service had it at `fetchedAt`. in-flux: changed between two fetches. linked:
 * a link to the mirror of a live file. failed: may still come. refused: never comes (unsafe name, a name that the disk
 * here refuses, no right to read it). left-out: no result (excluded, too large, no file). Of these, see `reason`.
 */
export type ResultState = 'listed' | 'synced' | 'in-flux' | 'linked' | 'failed' | 'refused' | 'left-out';

export interface ResultName {
  readonly jobId: JobId;
  readonly name: string;
}

export interface ResultStamp {
  /** Modification time in the listing before its last download (docs/dev/rest.md 3.3); null without one. */
  readonly stamp: string | null;
  /** Whether the listing with that time came two seconds before the download, and no later download started. */
  readonly stampProven: boolean;
}

export interface ResultRow extends ResultName, ResultStamp {
  readonly state: ResultState;
  readonly reason: string | null;
  readonly bytes: number | null;
  readonly sha256: string | null;
  /** `keyText` of the live file that it is proven to be. */
  readonly live: string | null;
  readonly listedAt: number;
  readonly fetchedAt: number | null;
  /** How often in a row the service did not start to send it. */
  readonly hangs: number;
  /** When it is due again, and the interval that led to that. */
  readonly dueAt: number;
  readonly intervalMs: number;
}

/** Counts of the results of a job. `synced` includes links; `failed` includes what is refused, and never comes. */
export interface ResultCounts {
  readonly listed: number;
  readonly synced: number;
  readonly linked: number;
  readonly inFlux: number;
  readonly queued: number;
  readonly failed: number;
  readonly refused: number;
  readonly leftOut: number;
  readonly bytes: number;
}

export interface ResultSyncRow {
  readonly jobId: JobId;
  readonly startedAt: number;
  readonly updatedAt: number;
  /** Null while it runs, or if it was killed. */
  readonly endedAt: number | null;
  /** Files that were due, and how many of them are done. */
  readonly wanted: number;
  readonly done: number;
  /** Total size at their last fetch; null if one size is unknown. */
  readonly wantedBytes: number | null;
  readonly bytes: number;
  /** How the last files came: `service` (in older states `soap`, over REST too), or the kind of direct transfer. */
  readonly way: string | null;
  /** Why files that should have come directly came by the service. */
  readonly fallback: string | null;
  /** Files that the service sends now, with the bytes that have arrived. */
  readonly arriving: readonly (readonly [name: string, bytes: number])[];
}

/**
 * asked: before the call of GetFileTransferMethod. open: its response was recorded. ended: EndFileTransfer was called,
 * or there was nothing to end. unknown: the agent was killed before the response was recorded.
 */
type LeaseState = 'asked' | 'open' | 'ended' | 'unknown';

/** A transfer grant, without its private key. */
export interface LeaseRow {
  readonly leaseId: number;
  readonly jobId: JobId;
  readonly state: LeaseState;
  readonly protocol: 'NetworkShare' | 'SftpScp' | null;
  readonly host: string | null;
  readonly basePath: string | null;
  readonly username: string | null;
  readonly publicKey: string | null;
  /** `rsync` or `share`, once it worked. */
  readonly way: string | null;
  readonly askedAt: number;
  readonly openedAt: number | null;
  readonly endedAt: number | null;
  /** Why it is `unknown`, or the response to its release. */
  readonly reason: string | null;
}

/** A request of a command to the process that serves the state. */
interface Request {
  readonly requestId: number;
  /** When it was made, or last renewed by its command. */
  readonly madeAt: number;
  readonly answer: string | null;
}

export interface RequestRow extends Request {
  readonly jobId: JobId;
  /** follow: a command waits for the end of the job. */
  readonly kind: 'sync' | 'unwatch' | 'forget' | 'forget-files' | 'follow';
}

export interface ServiceRequestRow extends Request {
  /** What the job service reports, or the verification of a job: of what the service lists, or all of the cluster. */
  readonly kind: 'report' | 'verify' | 'verify-complete';
  /** Null: the reports of all jobs. */
  readonly jobId: JobId | null;
}

export type FoundBy = 'job-service' | 'probes';

/** The search for the tasks of a job whose request names none. Found tasks are those of `live_files`. */
export interface TaskSearchRow {
  readonly jobId: JobId;
  readonly files: readonly LiveFileName[];
  readonly foundBy: FoundBy | null;
  /** Consecutive rounds without a new task. */
  readonly fruitless: number;
  readonly searchedAt: number | null;
  /** Null while no round is planned: the tasks are known, or the job is not followed. */
  readonly nextSearchAt: number | null;
  readonly hint: string | null;
}

export interface JobInformationRow {
  readonly jobId: JobId;
  readonly information: JobInformation;
  /** When its job state was first seen, and when it was last reported. */
  readonly since: number;
  readonly reportedAt: number;
  /** Whether the job was watched again since. */
  readonly isFormer: boolean;
}

export interface JobStatesRow {
  readonly requestedAt: number;
  readonly nextRequestAt: number;
  /** Consecutive failed requests, and the error of the last one. */
  readonly failures: number;
  readonly error: StoredError | null;
  readonly listed: number;
  /** Jobs above the maximum of `watchMine`. */
  readonly waiting: number;
}

export interface WatchMineRule {
  /** Patterns of names, as in .gitignore: a job is taken if one includes it and none excludes it. */
  readonly include: readonly string[];
  readonly exclude: readonly string[];
  /** Jobs that ended before the rule began, and are older than this, are ignored. */
  readonly maxAgeMs: number;
  readonly maxJobs: number;
}

/** A rule, and since when it applies; that of a command overrules that of the configuration. */
export interface WatchMineRow extends WatchMineRule {
  readonly source: 'config' | 'command';
  readonly since: number;
}

export interface WatchRequest extends Pick<JobRow, 'jobId' | 'source' | 'results' | 'settleAfterMs'> {
  readonly stallAfterMs?: number | null;
  readonly seenState?: string | null;
  /** Null: the tasks are searched. */
  readonly tasks: readonly TaskId[] | null;
  readonly files: readonly LiveFileName[];
}
