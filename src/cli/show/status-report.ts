/** The output of `agent status --json`. */

import path from 'node:path';
import { clockLines } from '../../agent/service-clock.ts';
import { type Config, hasJobService } from '../../config/config.ts';
import { asJobtailError, JobtailError } from '../../errors.ts';
import type { AgentRow } from '../../fleet/agents/agents.ts';
import type { FleetClient } from '../../fleet/commands/client.ts';
import { byTaskAndFile, compareIds, isOver, type JobId } from '../../job.ts';
import { shownJob, shownTask } from '../../job-information.ts';
import { reasonsAgainst } from '../../proven.ts';
import { TextDecoding } from '../../remote/text/decoding.ts';
import { liveParts, resultsParts } from '../../safe-names.ts';
import { answeredAt, shownJobService, shownSearch } from '../../store/jobs.ts';
import { shownLiveFile } from '../../store/live-files.ts';
import { lockHolder } from '../../store/lock.ts';
import { outageIn } from '../../store/outage.ts';
import { shownSync } from '../../store/results.ts';
import type { JobRow, LeaseRow, LiveFileRow, ResultRow } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import { DAY_MS } from '../../system/clock.ts';
import { type DiskReport, disksOf } from './disks.ts';

/** Maximum results with a reason; the others are counted. */
const MAX_NOT_SYNCED = 1_000;

export type Report = ReturnType<typeof reportOf>;
export type JobReport = Report['jobs'][number];

/** All followed jobs if undefined; `all`: also those of `unwatch`. */
export type WantedJobs = readonly JobId[] | 'all' | undefined;

export function reportOf(config: Config, store: Store, wanted: WantedJobs) {
  const holder = lockHolder(config.state.directory);
  const agent = holder?.role === 'agent' ? holder : undefined;
  const named = typeof wanted === 'object' ? wanted.map((jobId) => store.jobs.get(jobId)) : undefined;
  const jobs =
    named?.filter((job) => job !== undefined) ??
    store.jobs
      .all()
      .filter(({ state }) => wanted === 'all' || state !== 'ended')
      .sort((a, b) => compareIds(a.jobId, b.jobId));
  return {
    agent: {
      running: agent !== undefined,
      pid: agent?.pid ?? null,
      ...(agent === undefined || agent.host === '' ? {} : { host: agent.host }),
      // A command that serves the state meanwhile.
      ...(holder?.role === 'command' ? { command: holder.pid } : {}),
    },
    outage: (agent === undefined ? undefined : outageIn(config.state.directory)) ?? null,
    clock: clockLines(store.capabilities, config.retention.settledMs !== null),
    decoding: new TextDecoding(store.capabilities).server,
    jobService: hasJobService(config.service) ? shownJobService(store.jobInformation.lastListing()) : null,
    watchMine: watchMineReport(store),
    notify: { rules: config.notify.length, ...store.outbox.counts() },
    jobs: jobs.map((job) => jobReport(config, store, job, named !== undefined)),
  };
}

/** @throws JobtailError if it was removed from the state */
export function jobIn(config: Config, store: Store, jobId: JobId): JobReport | undefined {
  const row = rowOf(store, jobId);
  return row && jobReport(config, store, row, false);
}

/** The same once the agent works on it no more: a command that waits reads it again and again. */
export function endedIn(config: Config, store: Store, jobId: JobId): JobReport | undefined {
  const row = rowOf(store, jobId);
  return row && isOver(row) ? jobReport(config, store, row, false) : undefined;
}

function rowOf(store: Store, jobId: JobId): JobRow | undefined {
  const row = store.jobs.get(jobId);
  if (row === undefined && store.jobs.isForgotten(jobId))
    throw new JobtailError('job-unknown', `job ${jobId} was removed from the state (agent forget)`);
  return row;
}

function jobReport(config: Config, store: Store, job: JobRow, whole: boolean) {
  const { directory } = config.mirror;
  const files = store.liveFiles.ofJob(job.jobId).sort(byTaskAndFile);
  const reported = store.jobInformation.get(job.jobId);
  const found = new Set(files.map(({ taskId }) => taskId)).size;
  const counts = store.results.counts(job.jobId);
  const polledAt = answeredAt(job);
  const unsynced = whole ? store.results.notSynced(job.jobId, MAX_NOT_SYNCED) : [];
  return {
    jobId: job.jobId,
    state: job.state,
    error: job.error,
    source: job.source,
    ...shownJob(reported?.information),
    jobStateSince: reported?.since ?? null,
    reportedAt: reported?.reportedAt ?? null,
    tasks: { ...tasksReport(config, store, job, found), reported: (reported?.information.tasks ?? []).map(shownTask) },
    settleAfterMinutes: job.settleAfterMs === null ? null : job.settleAfterMs / 60_000,
    watchedAt: job.watchedAt,
    polledAt,
    // A long poll commits what it appended before it ends.
    grownAt: files.reduce((latest, { grownAt }) => Math.max(latest, grownAt ?? 0), job.grownAt ?? 0) || null,
    stalledAt: job.stalledAt,
    pollAgeMs: isOver(job) || polledAt === null ? null : Math.max(0, Date.now() - polledAt),
    failures: job.failures,
    refusedEntries: job.refused,
    files: files.map((row) => fileReport(directory, row)),
    unproven: isOver(job) ? reasonsAgainst(job, files, counts) : null,
    results: {
      ...counts,
      directory: job.results ? path.join(directory, ...resultsParts(job.jobId)) : null,
      lastSync: shownSync(store.resultSyncs.get(job.jobId)),
      transferMethod: leaseReport(store.leases.lastOf(job.jobId)),
      reasons: store.results.reasons(job.jobId),
      notSynced: unsynced.map(({ name, state, reason }: ResultRow) => ({ name, state, reason })),
    },
  };
}

/** Of the temporary key, only its existence. */
function leaseReport(lease: LeaseRow | undefined) {
  if (lease === undefined) return null;
  const { state, protocol, host, way, askedAt, endedAt, reason } = lease;
  return { state, protocol, host, way, askedAt, endedAt, reason };
}

function fileReport(mirrorDirectory: string, row: LiveFileRow) {
  const { taskId, file, ...shown } = shownLiveFile(row);
  const mirror = path.resolve(mirrorDirectory, ...liveParts(row.jobId, row));
  return { taskId, file, path: mirror, ...shown, mismatches: row.mismatches };
}

function tasksReport({ service }: Config, store: Store, job: JobRow, found: number) {
  const search = store.taskSearches.get(job.jobId);
  const isSearched = !isOver(job) && search !== undefined;
  // Without probes of its own, a job gets its tasks with the report about all jobs.
  const nextReported = hasJobService(service) ? (store.jobInformation.lastListing()?.nextRequestAt ?? null) : null;
  return {
    ...shownSearch(job, search, found),
    by: search === undefined ? ('named' as const) : search.foundBy,
    searchedAt: search?.searchedAt ?? null,
    nextSearchAt: isSearched ? (search.nextSearchAt ?? nextReported) : null,
  };
}

function watchMineReport(store: Store) {
  const rule = store.watchMine.inForce();
  if (rule === undefined) return null;
  const { maxAgeMs, ...others } = rule;
  return {
    ...others,
    maxAgeDays: maxAgeMs / DAY_MS,
    following: store.jobs.followedByRule(),
    waiting: store.jobInformation.lastListing()?.waiting ?? 0,
  };
}

/** What the report of a fleet has besides that of one agent. */
export function ofFleet(
  jobs: Report['jobs'],
  agents: readonly AgentRow[],
  owners: Awaited<ReturnType<FleetClient['owners']>>,
) {
  const byJob = new Map(owners.map((row) => [row.jobId, row]));
  return {
    agents,
    waitingJobs: jobs.filter(({ jobId }) => byJob.get(jobId)?.isWaiting).length,
    jobs: jobs.map((job) => {
      const { owner = null, attempt = null } = byJob.get(job.jobId) ?? {};
      return { ...job, owner, attempt };
    }),
  };
}

export type FleetPart = Pick<ReturnType<typeof ofFleet>, 'agents' | 'waitingJobs'>;
export type OwnedJob = JobReport & { readonly owner?: string | null; readonly attempt?: number | null };

/** The shape of `--json`, which the table renders and an agent sends over its socket. One of an earlier version sends less. */
export type ShownReport = Omit<Report, 'jobs' | 'clock' | 'decoding'> &
  Partial<FleetPart & Pick<Report, 'clock' | 'decoding'> & Surroundings> & { readonly jobs: readonly OwnedJob[] };

export interface Surroundings {
  /** Those of a fleet are on other machines. */
  readonly disks?: readonly DiskReport[];
  readonly view: Awaited<ReturnType<typeof viewReport>>;
}

export const surroundingsOf = async (config: Config): Promise<Surroundings> => ({
  disks: await disksOf(config),
  view: await viewReport(config),
});

/** `problem`: why no link leads there, if something else listens. */
export async function viewReport({ view, state }: Config) {
  if (view === null) return null;
  // Loaded only here: they need the network and cryptography.
  const [{ addressOf, findView, unprovenText }, { readToken, tokenFileOf }] = await Promise.all([
    import('../../view/link.ts'),
    import('../../view/token.ts'),
  ]);
  const { listen, tokenFile } = view;
  const address = addressOf(listen);
  try {
    const token = readToken(tokenFileOf({ tokenFile, stateDirectory: state.directory }));
    const found = await findView(listen, token);
    if (found.kind !== 'unproven') return { address, answers: found.kind === 'view', problem: undefined };
    return { address, answers: false, problem: unprovenText(listen) };
  } catch (error) {
    return { address, answers: false, problem: asJobtailError(error).message };
  }
}
