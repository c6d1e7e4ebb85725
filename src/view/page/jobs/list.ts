/** Which jobs are shown, and in which order. */
import { isOver } from '../../../job.ts';
import { isRunning, phaseOf } from '../../../job-information.ts';
import type { JobCondition, JobSummary, ReportedTime } from '../../contract/events.ts';
import { type Columns, column, type Sort, sorted } from '../parts/sort.ts';
import { duration } from '../text/units.ts';

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

export const RANKS: ReadonlyMap<Group, number> = new Map(GROUPS.map(([group], rank) => [group, rank]));

export function groupOf({ jobState, state, stalledAt, firstError }: JobCondition): Group {
  const phase = phaseOf(jobState);
  if (jobState !== null && /fail|error/i.test(jobState)) return 'failed';
  if (firstError !== null && firstError.isOfService !== true) return 'error';
  if (stalledAt !== null) return 'stalled';
  if (jobState !== null && /cancel/i.test(jobState)) return 'canceled';
  if (isRunning(jobState)) return 'running';
  if (phase === 'active') return 'waiting';
  return phase === 'over' || isOver({ state }) ? 'finished' : 'unreported';
}

/** Groups without a member are left out. */
export function countsOf(groups: Iterable<Group>): ReadonlyMap<Group, number> {
  const counts = new Map<Group, number>();
  for (const group of groups) counts.set(group, (counts.get(group) ?? 0) + 1);
  return counts;
}

/** What changed within the same minute keeps its order: rows that grow would change places all the time. */
const SAME_MS = 60_000;

export const minuteOf = (at: number | null): number | null => (at === null ? null : Math.floor(at / SAME_MS));

/** Ids are decimal text of 64 bits. */
export const idKey = (id: string): string => id.padStart(20, '0');

/** Places times in order; one without a zone is taken as UTC, for that alone. Null if it is no time. */
function orderMs(time: ReportedTime | null): number | null {
  if (time === null) return null;
  const ms = time.ms ?? Date.parse(`${time.text}Z`);
  return Number.isFinite(ms) ? ms : null;
}

/** How long a job ran, or has run until now: by the agent's own clock, at least so long. Null if there is no start. */
export function runTime(job: JobSummary, now: number): number | null {
  const { jobState, startTime, endTime } = job;
  const start = orderMs(startTime);
  const since = runningSince(job);
  if (since !== null) return Math.max(0, now - since);
  if (startTime === null || start === null) return null;
  const end = orderMs(endTime);
  // If only one of them has a time zone, there is none.
  if (endTime !== null && end !== null)
    return (startTime.ms === null) === (endTime.ms === null) ? Math.max(0, end - start) : null;
  return startTime.ms === null || phaseOf(jobState) === 'over' ? null : Math.max(0, now - start);
}

/** `over 5 min`: it began before the agent saw it, at a time without a zone. */
export function runText(job: JobSummary, now: number): string {
  const ms = runTime(job, now);
  if (ms === null) return '';
  return `${runningSince(job) === null ? '' : 'over '}${duration(ms)}`;
}

/** Since when the agent sees a job run that has no start with a time zone. */
const runningSince = ({ jobState, jobStateSince, startTime }: JobSummary): number | null =>
  isRunning(jobState) && startTime?.ms == null ? jobStateSince : null;

export const COLUMNS = {
  job: column('Job', ({ jobId }) => idKey(jobId)),
  state: column('State', (job) => RANKS.get(groupOf(job)) ?? null, false),
  // Shown in a fleet.
  owner: column('Agent', ({ owner }) => owner, false),
  submitted: column('Submitted', ({ submitTime }) => orderMs(submitTime)),
  runTime: column('Run time', runTime),
  ended: column('Ended', ({ endTime }) => orderMs(endTime)),
  tasks: column('Tasks', ({ tasks }) => tasks.found),
  grown: column('Last growth', ({ grownAt }) => minuteOf(grownAt)),
  size: column('Size', ({ liveBytes }) => liveBytes),
  polled: column('Last poll', ({ polledAt }) => polledAt, false),
  results: column('Results', ({ results }) => results.listed || null),
} satisfies Columns<string, JobSummary>;

export type ColumnName = keyof typeof COLUMNS;

export const FAILED_FIRST: Sort<'state'> = { by: 'state', isDown: false };

/** Of equal jobs, what changed last comes first; then the newest id. */
export function ordered(jobs: Iterable<JobSummary>, { by, isDown }: Sort<ColumnName>, now: number): JobSummary[] {
  const minute = ({ changedAt }: JobSummary) => minuteOf(changedAt) ?? 0;
  const tie = (a: JobSummary, b: JobSummary) => minute(b) - minute(a) || (idKey(a.jobId) < idKey(b.jobId) ? 1 : -1);
  return sorted(jobs, COLUMNS[by], { isDown, now, tie });
}

export function matches(job: JobSummary, filter: string): boolean {
  const { jobId, name, jobState, state, owner, source, stalledAt, firstError } = job;
  const errorWords = firstError === null ? [] : [firstError.code, firstError.message, 'error'];
  const words = [jobId, name, jobState, state, owner, stalledAt === null ? '' : 'stalled', source, ...errorWords];
  return hasWords(words.join(' '), filter);
}

export const hasWords = (text: string, filter: string): boolean =>
  filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.toLowerCase().includes(word));
