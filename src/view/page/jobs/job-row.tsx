/** One job of the table. */
import type { ComponentChildren } from 'preact';
import type { JobSummary, ResultCounts } from '../../contract/events.ts';
import { JobState, MEANINGS, Outside, OwnFailure, Time } from '../parts/words.tsx';
import { hashOf } from '../route.ts';
import { ago, bytes, duration, grouped } from '../text/units.ts';
import { type ColumnName, runTime } from './list.ts';

interface JobRowProps {
  readonly job: JobSummary;
  readonly now: number;
  /** It has an error that the banner does not show for all. */
  readonly hasError: boolean;
}

export function JobRow({ job, now, hasError }: JobRowProps) {
  const { jobId, name, owner, submitTime, endTime, grownAt } = job;
  const run = runTime(job, now);
  return (
    <>
      <Cell of="job">
        <a class="job-link" href={hashOf({ page: 'live', jobId, files: [] })}>
          <strong>{jobId}</strong>
          {name !== null && <Outside text={name} />}
        </a>
      </Cell>
      <Cell of="state">
        <JobState job={job} />
      </Cell>
      <Cell of="owner">{owner !== null ? <Outside text={owner} /> : isFollowed(job) && 'waits for one'}</Cell>
      <Cell of="submitted">{submitTime !== null && <Time time={submitTime} now={now} />}</Cell>
      <Cell of="runTime">{run !== null && duration(run)}</Cell>
      <Cell of="ended">{endTime !== null && <Time time={endTime} now={now} />}</Cell>
      <Cell of="tasks">{job.searchingTasks && job.tasks === 0 ? 'searching' : grouped(job.tasks)}</Cell>
      <Cell of="grown">{grownAt === null ? 'no output yet' : ago(grownAt, now)}</Cell>
      <Cell of="size">{job.liveBytes > 0 && bytes(job.liveBytes)}</Cell>
      <Cell of="polled">
        <span title={MEANINGS[job.state]}>{polled(job, now)}</span>
      </Cell>
      <Cell of="results">
        <ResultsCell job={job} />
      </Cell>
      {hasError && (
        <td class="job-error">
          <OwnFailure error={job.error} />
        </td>
      )}
    </>
  );
}

function Cell({ of, children }: { of: ColumnName; children: ComponentChildren }) {
  return <td class={`job-${of}`}>{children}</td>;
}

/** How old what is shown is. */
function polled(job: JobSummary, now: number): string {
  if (!isFollowed(job)) return 'complete';
  return job.polledAt === null ? 'not yet' : ago(job.polledAt, now);
}

const isFollowed = ({ state }: JobSummary) => state === 'watched' || state === 'ending';

function ResultsCell({ job: { hasResults, results } }: { job: JobSummary }) {
  if (!hasResults) return <span class="fine">not fetched</span>;
  if (results === null || results.listed === 0) return <span class="fine">none yet</span>;
  return <Results counts={results} />;
}

export function Results({ counts }: { counts: ResultCounts }) {
  const { listed, synced, failed } = counts;
  return (
    <span class="fine">
      {listed === 0 ? 'no results' : `${grouped(synced)} of ${grouped(listed)}`}
      {failed > 0 && <span class="bad">, {grouped(failed)} failed</span>}
      {counts.bytes > 0 && `, ${bytes(counts.bytes)}`}
    </span>
  );
}
