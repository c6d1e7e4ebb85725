/** What the middleware tells of jobs, and how their tasks are found, as it is printed by `--json`. */
import { type Config, tellsOfJobs } from '../../config/config.ts';
import { type JobInformation, type JobTime, phaseOf, type TaskInformation } from '../../job-information.ts';
import type { JobInformationRow, JobRow } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';

const DAY_MS = 86_400_000;

/** What is told of a job itself. Texts are as they were told. */
export function jobFields(information: JobInformation | undefined) {
  return {
    name: information?.name ?? null,
    jobState: information?.state ?? null,
    creationTime: information?.creationTime ?? null,
    submitTime: information?.submitTime ?? null,
    startTime: information?.startTime ?? null,
    endTime: endOf(information?.state ?? null, information?.endTime ?? null),
  };
}

export type TaskFields = ReturnType<typeof taskFields>;

export function taskFields({ id, name, state, startTime, endTime, errorMessage }: TaskInformation) {
  return { taskId: id, name, taskState: state, startTime, endTime: endOf(state, endTime), errorMessage };
}

/** What goes on has no end: a service may return its limit, or the year 1 (docs/servers.md 10.3). */
const endOf = (state: string | null, endTime: JobTime | null) => (phaseOf(state) === 'active' ? null : endTime);

/** What was last told of a followed job. */
export function toldReport(row: JobInformationRow | undefined) {
  return {
    ...jobFields(row?.information),
    /** When the state was first seen, and when it was last told. */
    jobStateSince: row?.since ?? null,
    toldAt: row?.toldAt ?? null,
  };
}

interface FollowedTasks {
  readonly job: JobRow;
  /** Tasks whose live files are followed. */
  readonly found: number;
  readonly told: readonly TaskInformation[];
  /** There is a service that tells of jobs. */
  readonly tells: boolean;
}

/** How the tasks of a followed job are found, and what is told of them. */
export function tasksReport(store: Store, { job, found, told, tells }: FollowedTasks) {
  const search = store.taskSearches.get(job.jobId);
  const isFollowed = job.state === 'watched' || job.state === 'ending';
  const isSearched = isFollowed && search !== undefined;
  // While no look of its own is planned, tasks come with what is told of all jobs.
  const nextTold = tells ? (store.jobInformation.lastLook()?.nextLookAt ?? null) : null;
  return {
    found,
    by: search === undefined ? ('named' as const) : search.foundBy,
    lookingFor: isSearched && (found === 0 || search.nextLookAt !== null),
    lookedAt: search?.lookedAt ?? null,
    nextLookAt: isSearched ? (search.nextLookAt ?? nextTold) : null,
    hint: isSearched ? search.hint : null,
    told: told.map(taskFields),
  };
}

/** How the last look at the service that tells of jobs went; null where there is none. */
export function jobServiceReport({ service }: Config, store: Store) {
  if (!tellsOfJobs(service)) return null;
  const look = store.jobInformation.lastLook();
  return {
    lookedAt: look?.lookedAt ?? null,
    nextLookAt: look?.nextLookAt ?? null,
    failures: look?.failures ?? 0,
    error: look?.error ?? null,
    listed: look?.listed ?? null,
  };
}

/** The rule by which all jobs of the user are followed; null if there is none. */
export function watchMineReport(store: Store, jobs: readonly JobRow[]) {
  const rule = store.watchMine.inForce();
  if (rule === undefined) return null;
  const { source, since, include, exclude, maxAgeMs, mostJobs } = rule;
  const isFollowed = (job: JobRow) => job.source === 'mine' && (job.state === 'watched' || job.state === 'ending');
  return {
    ...{ source, since, include, exclude, mostJobs },
    maxAgeDays: maxAgeMs / DAY_MS,
    following: jobs.filter(isFollowed).length,
    waiting: store.jobInformation.lastLook()?.waiting ?? 0,
  };
}
