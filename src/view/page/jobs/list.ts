/** Which jobs are shown, and in which order. */
import type { JobSummary } from '../../contract/events.ts';
import { orderMs, runTime } from '../text/times.ts';

/** What an operator does about a job decides its group; the first one needs a person most. */
export const GROUPS = [
  ['failed', 'failed'],
  ['error', 'with an error'],
  ['stalled', 'stalled'],
  ['running', 'running'],
  ['waiting', 'waiting'],
  ['unreported', 'state not reported'],
  ['canceled', 'canceled'],
  ['finished', 'finished'],
] as const;

export type Group = (typeof GROUPS)[number][0];

const RANKS = new Map(GROUPS.map(([group], rank) => [group, rank]));

export function groupOf({ jobState, phase, state, stalledAt, error }: JobSummary): Group {
  if (jobState !== null && /fail|error/i.test(jobState)) return 'failed';
  if (error !== null && error.isOfService !== true) return 'error';
  if (stalledAt !== null) return 'stalled';
  if (jobState !== null && /cancel/i.test(jobState)) return 'canceled';
  if (jobState === 'Running') return 'running';
  if (phase === 'active') return 'waiting';
  return phase === 'over' || state === 'ended' || state === 'settled' ? 'finished' : 'unreported';
}

/** Jobs by group; groups without a job are left out. */
export function countsOf(jobs: Iterable<JobSummary>): ReadonlyMap<Group, number> {
  const counts = new Map<Group, number>();
  for (const job of jobs) counts.set(groupOf(job), (counts.get(groupOf(job)) ?? 0) + 1);
  return counts;
}

/** Null comes last in both directions. */
type Value = (job: JobSummary, now: number) => number | string | null;

interface Column {
  readonly label: string;
  readonly value: Value;
  /** The direction of the first click: most people look for the newest, the longest, the largest. */
  readonly isDown: boolean;
}

/** What changed within the same minute keeps its order: rows that grow would change places all the time. */
const SAME_MS = 60_000;

const column = (label: string, value: Value, isDown = true): Column => ({ label, value, isDown });

export const COLUMNS = {
  job: column('Job', ({ jobId }) => jobId.padStart(20, '0')),
  state: column('State', (job) => RANKS.get(groupOf(job)) ?? null, false),
  submitted: column('Submitted', ({ submitTime }) => orderMs(submitTime)),
  runTime: column('Run time', runTime),
  ended: column('Ended', ({ endTime }) => orderMs(endTime)),
  tasks: column('Tasks', ({ tasks }) => tasks),
  grown: column('Last growth', ({ grownAt }) => (grownAt === null ? null : Math.floor(grownAt / SAME_MS))),
  size: column('Size', ({ liveBytes }) => liveBytes),
  polled: column('Last poll', ({ polledAt }) => polledAt, false),
  results: column('Results', ({ results }) => results?.listed ?? null),
} as const satisfies Record<string, Column>;

export type ColumnName = keyof typeof COLUMNS;
export const COLUMN_NAMES = Object.keys(COLUMNS) as ColumnName[];

export interface Sort {
  readonly by: ColumnName;
  readonly isDown: boolean;
}

/** What failed comes first. */
export const FAILED_FIRST: Sort = { by: 'state', isDown: false };

/** A click on the head of a column: another column, or the other direction. */
export const clicked = (sort: Sort, by: ColumnName): Sort => ({
  by,
  isDown: sort.by === by ? !sort.isDown : COLUMNS[by].isDown,
});

/** Of equal jobs, what changed last comes first; then the newest id. */
export function ordered(jobs: Iterable<JobSummary>, { by, isDown }: Sort, now: number): JobSummary[] {
  const minute = ({ changedAt }: JobSummary) => Math.floor(changedAt / SAME_MS);
  const keyed = [...jobs].map((job) => ({ job, value: (COLUMNS[by].value as Value)(job, now) }));
  const compared = (a: Keyed, b: Keyed) => {
    if (a.value === b.value) return minute(b.job) - minute(a.job) || compareIds(b.job.jobId, a.job.jobId);
    if (a.value === null || b.value === null) return a.value === null ? 1 : -1;
    return a.value < b.value === isDown ? 1 : -1;
  };
  return keyed.sort(compared).map(({ job }) => job);
}

interface Keyed {
  readonly job: JobSummary;
  readonly value: ReturnType<Value>;
}

const compareIds = (a: string, b: string) => a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);

/** The job has all the words somewhere in what is shown of it. */
export function matches(job: JobSummary, filter: string): boolean {
  const { jobId, name, jobState, state, source, stalledAt, error } = job;
  const errorWords = error === null ? [] : [error.code, error.message, 'error'];
  const words = [jobId, name, jobState, state, stalledAt === null ? '' : 'stalled', source, ...errorWords];
  const text = words.join(' ').toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}
