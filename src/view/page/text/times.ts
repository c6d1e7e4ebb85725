/** The times of a job, as the middleware reports them. */
import type { JobSummary, ReportedTime } from '../../contract/events.ts';

type Times = Pick<JobSummary, 'startTime' | 'endTime' | 'phase'>;

/** Places times in order; one without a zone is taken as UTC, for that alone. Null if it is no time. */
export function orderMs(time: ReportedTime | null): number | null {
  if (time === null) return null;
  const ms = time.ms ?? Date.parse(`${time.text}Z`);
  return Number.isFinite(ms) ? ms : null;
}

/** How long a job ran, or has run until now; null if that is not known. */
export function runTime({ startTime, endTime, phase }: Times, now: number): number | null {
  const start = orderMs(startTime);
  if (startTime === null || start === null) return null;
  const end = orderMs(endTime);
  // If only one of them has a time zone, there is none.
  if (endTime !== null && end !== null)
    return (startTime.ms === null) === (endTime.ms === null) ? Math.max(0, end - start) : null;
  return startTime.ms === null || phase === 'over' ? null : Math.max(0, now - start);
}
