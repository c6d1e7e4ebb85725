/** Which jobs are shown, in which order. */
import type { JobSummary } from '../../contract/events.ts';

/** What changed within the same minute keeps its order: rows that grow would change places all the time. */
const SAME_MS = 60_000;

/** What changed last comes first; the newest id of several. */
export function ordered(jobs: Iterable<JobSummary>): JobSummary[] {
  const minute = ({ changedAt }: JobSummary) => Math.floor(changedAt / SAME_MS);
  return [...jobs].sort((a, b) => minute(b) - minute(a) || compareIds(b.jobId, a.jobId));
}

const compareIds = (a: string, b: string) => a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);

/** The job has all the words somewhere in what is shown of it. */
export function matches(job: JobSummary, filter: string): boolean {
  const { jobId, name, jobState, state, source, error } = job;
  const text = [jobId, name, jobState, state, source, error?.code, error?.message, error === null ? '' : 'error']
    .join(' ')
    .toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}
