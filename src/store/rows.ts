/** What the store keeps, as the rest of the program sees it. Times are milliseconds since 1970, lengths are bytes. */
import type { ErrorCode } from '../errors.ts';
import type { JobId, LiveFileKey, LiveFileName, TaskId } from '../job.ts';
import type { JobInformation } from '../job-information.ts';
import type { KeptMismatch } from '../mismatch.ts';

/**
 * Why a job is followed: configured, requested by a command, or by the rule for all jobs of the user (`WatchMineRow`).
 */
type JobSource = 'config' | 'command' | 'mine';

/**
 * What a job is to the agent; the job state of the middleware is another thing.
 * watched: followed. ending: `unwatch` was requested, the last pass is not complete. ended: no longer followed.
 * settled: no longer followed because it was over, or quiet for its settling time, and its last pass is through.
 */
export type WatchState = 'watched' | 'ending' | 'ended' | 'settled';

/** A failure as it is kept and shown. Holds no secret: JobtailError messages are made without them (src/redact.ts). */
export interface StoredError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly hint: string | null;
  /** When it first appeared. */
  readonly since: number;
  /** When a failed poll or pass is repeated. */
  readonly retryAt?: number;
}

export interface JobRow {
  readonly jobId: JobId;
  readonly source: JobSource;
  readonly state: WatchState;
  readonly results: boolean;
  readonly settleAfterMs: number | null;
  /** A running job that does not grow for so long is stalled; null: by the configuration. */
  readonly stallAfterMs: number | null;
  readonly watchedAt: number;
  readonly polledAt: number | null;
  readonly grownAt: number | null;
  /** Since when it runs without growth, once that is long enough; null while it is not stalled. */
  readonly stalledAt: number | null;
  /** Entries of answers that were refused, since the job is watched. */
  readonly refused: number;
  /** Consecutive failures. */
  readonly failures: number;
  readonly error: StoredError | null;
  /** Grows with every command and every change of a state, not with notes of a poll. */
  readonly revision: number;
}

/**
 * The committed state of a live mirror. `position` never exceeds what is safely in the mirror (append, flush, then
 * commit); `fingerprint` is of the bytes before it.
 */
export interface LiveFileRow extends LiveFileKey {
  readonly jobId: JobId;
  readonly position: number;
  readonly generation: number;
  readonly fingerprint: string | null;
  /**
   * The CRC-32 of all bytes before the position; null where an earlier version committed them, or they were written
   * anew.
   */
  readonly checksum: number | null;
  /** Stretches before the position whose bytes could not be had, in order. */
  readonly inexact: readonly InexactRegion[];
  /**
   * Inode and modification time of the mirror after the last write of the agent; without the time, it counts as
   * modified.
   */
  readonly inode: string | null;
  readonly modifiedNs: string | null;
  /** While bytes are appended behind the position: the boot of the machine on which that was begun. */
  readonly bootId: string | null;
  /** How far the keeping of the old generation has come, if one is under way. */
  readonly rotation: 'copying' | 'copied' | null;
  /** Meanwhile: what distinguishes the copy from those of other owners of the job; null where agents hand none over. */
  readonly copyMark: string | null;
  /** The path the service gave with its text, and the listed name proven to hold its raw bytes. */
  readonly relativePath: string | null;
  readonly listedName: string | null;
  readonly grownAt: number | null;
  /** Bytes that were proven against the raw bytes of the service in the last complete pass. */
  readonly verified: number | null;
  /** The last mismatches, in order: why generations began, and what was repaired. */
  readonly mismatches: readonly KeptMismatch[];
  readonly error: StoredError | null;
}

/** A stretch of a mirror whose width is right but whose bytes could not be had. */
export interface InexactRegion {
  readonly start: number;
  readonly length: number;
}

/**
 * listed: not fetched yet. synced: as the service had it at `fetchedAt`. in-flux: it changed between two fetches.
 * linked: it is a live file, and a link to its mirror. failed, left-out, refused (its name is unsafe): see `reason`.
 */
export type ResultState = 'listed' | 'synced' | 'in-flux' | 'linked' | 'failed' | 'refused' | 'left-out';

export interface ResultRow {
  readonly jobId: JobId;
  /** The name exactly as listed. */
  readonly name: string;
  readonly state: ResultState;
  readonly reason: string | null;
  readonly bytes: number | null;
  readonly sha256: string | null;
  /** The live file it is proven to be, as `keyText` writes it. */
  readonly live: string | null;
  readonly listedAt: number;
  readonly fetchedAt: number | null;
  /** Time of change in the listing before its last download (docs/rest.md 3.3); null without one. */
  readonly stamp: string | null;
  /** Whether the listing had that stamp two seconds before the download began, and none was begun since. */
  readonly stampProven: boolean;
  /** How often in a row the service did not begin to send it. */
  readonly hangs: number;
  /** When it is to be looked at again, and the interval that led to that. */
  readonly dueAt: number;
  readonly intervalMs: number;
}

/** Counts of the results of a job. `synced` is what is there, links included; `failed` includes refused names. */
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

/** How the last sync of a job's results went, or goes. */
export interface ResultSyncRow {
  readonly jobId: JobId;
  readonly startedAt: number;
  readonly updatedAt: number;
  /** Null while it runs, or if it was killed. */
  readonly endedAt: number | null;
  /** Files that were due, and those of them that are done. */
  readonly wanted: number;
  readonly done: number;
  /** The size of all of them when they were last fetched; null where one has no known size: a listing has none. */
  readonly wantedBytes: number | null;
  /** Bytes that arrived. */
  readonly bytes: number;
  /** How the last files came: `soap` for the service itself, whatever it speaks, or the way of a direct transfer. */
  readonly way: string | null;
  /** Why files that should have come directly came by the service. */
  readonly fallback: string | null;
}

/**
 * asked: GetFileTransferMethod was about to be called. open: its answer was recorded. ended: EndFileTransfer was
 * called, or there was nothing to end. unknown: the agent was killed before the answer was recorded.
 */
export type LeaseState = 'asked' | 'open' | 'ended' | 'unknown';

/** A transfer method that the service lent for a job, without its private key. */
export interface LeaseRow {
  readonly leaseId: number;
  readonly jobId: JobId;
  readonly state: LeaseState;
  readonly protocol: 'NetworkShare' | 'SftpScp' | null;
  readonly host: string | null;
  readonly basePath: string | null;
  readonly username: string | null;
  readonly publicKey: string | null;
  /** What the key is allowed to do, once it was tried: `rsync`, `scp`, `sftp`. */
  readonly way: string | null;
  readonly askedAt: number;
  readonly openedAt: number | null;
  readonly endedAt: number | null;
  /** Why it is `unknown`, or the response of the service when it was released. */
  readonly reason: string | null;
}

/** What a command asked the running agent to do. */
export interface RequestRow {
  readonly requestId: number;
  readonly jobId: JobId;
  readonly kind: 'sync' | 'unwatch';
  readonly madeAt: number;
  /** JSON of the outcome, once it is done. */
  readonly answer: string | null;
}

/** How the tasks of a job were found: named by the job service, or proven by probes. */
export type FoundBy = 'job-service' | 'probes';

/** The search for the tasks of a job: only for a job whose order names none. Found tasks are those of `live_files`. */
export interface TaskSearchRow {
  readonly jobId: JobId;
  /** The live files that a task gets when it is found. */
  readonly files: readonly LiveFileName[];
  /** How the last ones were found; null if none was. */
  readonly foundBy: FoundBy | null;
  /** Looks in a row that found nothing new. */
  readonly fruitless: number;
  readonly lookedAt: number | null;
  /** Null while no look is planned: because the tasks are known, or the job is not followed. */
  readonly nextLookAt: number | null;
  /** What a person can do about it, if nothing is found for long. */
  readonly hint: string | null;
}

/** The last report of the middleware about a followed job. */
export interface JobInformationRow {
  readonly jobId: JobId;
  readonly information: JobInformation;
  /** When its job state was first seen, and when it was last reported. */
  readonly since: number;
  readonly toldAt: number;
}

/** Result of the last request to the job service: one row for all jobs. */
export interface JobStatesRow {
  readonly lookedAt: number;
  readonly nextLookAt: number;
  /** Looks in a row that failed, and why the last one did. */
  readonly failures: number;
  readonly error: StoredError | null;
  /** Jobs of the user in the last list that came. */
  readonly listed: number;
  /** Jobs that `watchMine` would take if it might follow more at a time. */
  readonly waiting: number;
}

/** Which jobs of the user are followed without being named. */
export interface WatchMineRule {
  /** Patterns of names, as in .gitignore: a job is taken if one includes it and none excludes it. */
  readonly include: readonly string[];
  readonly exclude: readonly string[];
  /** Jobs that ended before the rule began, and are older, are left alone. */
  readonly maxAgeMs: number;
  /** Followed at a time because of the rule. */
  readonly mostJobs: number;
}

/** The rule in force, and since when; that of a command counts before that of the configuration. */
export interface WatchMineRow extends WatchMineRule {
  readonly source: 'config' | 'command';
  readonly since: number;
}

/** What is to be followed of a job. */
export interface WatchOrder extends Pick<JobRow, 'jobId' | 'source' | 'results' | 'settleAfterMs'> {
  /** Left out: as before. */
  readonly stallAfterMs?: number | null;
  /** Null: whichever it has; they are to be found. */
  readonly tasks: readonly TaskId[] | null;
  readonly files: readonly LiveFileName[];
}
