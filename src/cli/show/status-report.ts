/** How everything that is followed stands: what `agent status --json` prints. */
import path from 'node:path';
import { mirrorPath } from '../../agent/live/mirror/mirror.ts';
import { resultsDirectory } from '../../agent/results/results.ts';
import { type Config, tellsOfJobs } from '../../config/config.ts';
import { compareIds, type JobId, LIVE_FILE_NAMES, type LiveFileKey } from '../../job.ts';
import { lockHolder } from '../../store/lock.ts';
import { bytesPerSecond } from '../../store/results.ts';
import type { JobRow, LeaseRow, LiveFileRow, ResultRow, ResultSyncRow } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import { jobServiceReport, tasksReport, toldReport, watchMineReport } from './told-report.ts';

/** Results with a reason that are reported; the others are counted. */
const MOST_NOT_SYNCED = 1_000;

export type Report = ReturnType<typeof reportOf>;
export type JobReport = Report['jobs'][number];

/** The contract of `--json`: keys are added, never taken away, while the version is 1. */
export function reportOf(config: Config, store: Store, only: JobId | undefined) {
  const pid = lockHolder(config.state.directory);
  const all = store.jobs.all();
  const jobs = all
    .filter((job) =>
      only === undefined
        ? job.state === 'watched' || job.state === 'ending' || job.state === 'settled'
        : job.jobId === only,
    )
    .sort((a, b) => compareIds(a.jobId, b.jobId));
  return {
    version: 1,
    agent: { running: pid !== undefined, pid: pid ?? null },
    jobService: jobServiceReport(config, store),
    watchMine: watchMineReport(store, all),
    jobs: jobs.map((job) => jobReport(config, store, job, only !== undefined)),
  };
}

function jobReport(config: Config, store: Store, job: JobRow, whole: boolean) {
  const { directory } = config.mirror;
  const files = store.liveFiles.ofJob(job.jobId).sort(asPeopleExpect);
  const told = store.jobInformation.get(job.jobId);
  const found = new Set(files.map(({ taskId }) => taskId)).size;
  const followed = { job, found, told: told?.information.tasks ?? [], tells: tellsOfJobs(config.service) };
  const troubled = whole ? store.results.notSynced(job.jobId, MOST_NOT_SYNCED) : [];
  return {
    jobId: job.jobId,
    state: job.state,
    error: job.error,
    source: job.source,
    ...toldReport(told),
    tasks: tasksReport(store, followed),
    watchedAt: job.watchedAt,
    polledAt: job.polledAt,
    grownAt: job.grownAt,
    lagMs: lagOf(job),
    failures: job.failures,
    refusedEntries: job.refused,
    files: files.map((row) => fileReport(directory, row)),
    results: {
      ...store.results.counts(job.jobId),
      directory: job.results ? resultsDirectory(directory, job.jobId) : null,
      lastLook: syncReport(store.resultSyncs.get(job.jobId)),
      transferMethod: leaseReport(store.leases.lastOf(job.jobId)),
      notSynced: troubled.map(({ name, state, reason }: ResultRow) => ({ name, state, reason })),
    },
  };
}

/** By task; standard output first. */
export function asPeopleExpect(a: LiveFileKey, b: LiveFileKey): number {
  return compareIds(a.taskId, b.taskId) || LIVE_FILE_NAMES.indexOf(a.file) - LIVE_FILE_NAMES.indexOf(b.file);
}

/** How old what the mirrors show may be: since the last visit, or since visits fail. */
function lagOf({ state, error, polledAt }: JobRow): number | null {
  if (polledAt === null || state === 'ended' || state === 'settled') return null;
  return Math.max(0, Date.now() - Math.min(polledAt, error?.since ?? polledAt));
}

function syncReport(pass: ResultSyncRow | undefined) {
  if (pass === undefined) return null;
  const { jobId: _, ...rest } = pass;
  return { ...rest, bytesPerSecond: Math.round(bytesPerSecond(pass)) };
}

/** Of the temporary key only that there is one. */
function leaseReport(lease: LeaseRow | undefined) {
  if (lease === undefined) return null;
  const { state, protocol, host, way, askedAt, endedAt, reason } = lease;
  return { state, protocol, host, way, askedAt, endedAt, reason };
}

function fileReport(mirrorDirectory: string, row: LiveFileRow) {
  const { inexact } = row;
  return {
    taskId: row.taskId,
    file: row.file,
    path: path.resolve(mirrorPath(mirrorDirectory, row.jobId, row)),
    bytes: row.position,
    generation: row.generation,
    exact: inexact.length === 0,
    inexactBytes: inexact.reduce((sum, { length }) => sum + length, 0),
    verified: row.verified !== null && row.verified === row.position,
    grownAt: row.grownAt,
    mismatches: row.mismatches,
    error: row.error,
  };
}
