/** The jobs as the page shows them, in few queries for all of them, and the failure of the service that they share. */
import { ERROR_POLICIES } from '../../errors.ts';
import { byTaskAndFile, isOver, type JobId } from '../../job.ts';
import { shownJob, shownTask } from '../../job-information.ts';
import { unprovenIn } from '../../proven.ts';
import { answeredAt, shownSearch } from '../../store/jobs.ts';
import { shownLiveFile } from '../../store/live-files.ts';
import { shownSync } from '../../store/results.ts';
import type {
  JobInformationRow,
  JobRow,
  ResultCounts,
  StoredError,
  TaskSearchRow,
  WatchState,
} from '../../store/rows.ts';
import type { LiveSums } from '../../store/totals.ts';
import type { ShownError } from '../contract/addresses.ts';
import type { FileState, JobDetail, JobSummary } from '../contract/events.ts';
import type { JobStores } from '../fleet.ts';

const NO_FILES: LiveSums = { tasks: 0, bytes: 0, grownAt: null, error: null };

const NO_ROWS = { listed: 0, synced: 0, linked: 0, inFlux: 0, queued: 0, failed: 0, refused: 0, leftOut: 0 };
export const NO_RESULTS: ResultCounts = { ...NO_ROWS, bytes: 0 };

/** What is known of one job besides its row. */
interface JobFacts {
  readonly live: LiveSums;
  readonly reported: JobInformationRow | undefined;
  readonly counts: ResultCounts | undefined;
  readonly search: TaskSearchRow | undefined;
}

/** Those that are followed or settled. */
export function jobsOf(stores: JobStores): JobSummary[] {
  return stores.all().flatMap(({ store, jobs }) => {
    const { totals, jobInformation, results, taskSearches } = store;
    const live = totals.liveByJob();
    const reported = new Map(jobInformation.all().map((row) => [row.jobId, row]));
    const counts = results.countsByJob();
    const searches = new Map(taskSearches.all().map((row) => [row.jobId, row]));
    return jobs.flatMap((job) => {
      const { jobId } = job;
      const known = { reported: reported.get(jobId), counts: counts.get(jobId), search: searches.get(jobId) };
      return job.state === 'ended' ? [] : summaryOf(stores, job, { ...known, live: live.get(jobId) ?? NO_FILES });
    });
  });
}

/** Any job that was ever ordered. */
export function detailOf(stores: JobStores, jobId: JobId): JobDetail | undefined {
  const store = stores.of(jobId);
  const job = store.jobs.get(jobId);
  if (job === undefined) return undefined;
  const reported = store.jobInformation.get(jobId);
  const search = store.taskSearches.get(jobId);
  const live = store.totals.liveByJob(jobId).get(jobId) ?? NO_FILES;
  const counts = store.results.counts(jobId);
  const sync = store.resultSyncs.get(jobId);
  const summary = summaryOf(stores, job, { live, reported, counts, search });
  return {
    ...summary,
    unproven: isOver(job) ? unprovenIn(store, jobId) : null,
    tasks: { ...summary.tasks, reported: (reported?.information.tasks ?? []).map(shownTask) },
    results: { ...counts, lastSync: shownSync(sync), arriving: sync?.arriving ?? [] },
  };
}

export function filesOf(stores: JobStores, jobId: JobId): FileState[] {
  const rows = stores.of(jobId).liveFiles.ofJob(jobId);
  return rows.sort(byTaskAndFile).map((row) => ({
    ...shownLiveFile(row),
    error: shownError(row.error),
    version: `g${row.generation}`,
  }));
}

function summaryOf(stores: JobStores, job: JobRow, { live, reported, counts, search }: JobFacts): JobSummary {
  const { jobId, state, source, watchedAt, stalledAt } = job;
  const grownAt = Math.max(job.grownAt ?? 0, live.grownAt ?? 0) || null;
  const firstError = shownError(job.error ?? live.error);
  const changes = [watchedAt, grownAt, reported?.since, firstError?.since];
  return {
    jobId,
    state,
    source,
    grownAt,
    stalledAt,
    firstError,
    ...shownJob(reported?.information),
    jobStateSince: reported?.since ?? null,
    polledAt: answeredAt(job),
    ...stores.placeOf(jobId),
    tasks: shownSearch(job, search, live.tasks),
    liveBytes: live.bytes,
    changedAt: Math.max(...changes.map((at) => at ?? 0)),
    hasResults: job.results,
    results: counts ?? NO_RESULTS,
  };
}

interface FollowedState {
  readonly state: WatchState;
  readonly polledAt: number | null;
  readonly error: StoredError | null;
}

const isOfService = ({ code }: StoredError) => ERROR_POLICIES[code].isOfService;

/** A failure with its policy, as the page needs it. */
function shownError(error: StoredError | null): ShownError | null {
  return error === null ? null : { ...error, isOfService: isOfService(error) };
}

/** The first failure since the service last answered a poll of any job; null while it answers one of them. */
export function serviceErrorOf(jobs: readonly FollowedState[]): ShownError | null {
  const followed = jobs.filter((job) => !isOver(job));
  const errors = followed.flatMap(({ error }) => (error !== null && isOfService(error) ? [error] : []));
  const answered = followed.filter(({ error }) => error === null || !isOfService(error));
  const answeredAt = Math.max(0, ...answered.map(({ polledAt }) => polledAt ?? 0));
  // A job that failed before the last answer has a failure of its own, unless others failed since.
  const [first] = errors.filter(({ since }) => since >= answeredAt).sort((a, b) => a.since - b.since);
  if (first === undefined) return null;
  const retryAt = Math.min(...errors.map((error) => error.retryAt ?? Number.POSITIVE_INFINITY));
  const { retryAt: _, ...error } = first;
  return { ...error, ...(Number.isFinite(retryAt) ? { retryAt } : {}), isOfService: true };
}
