/** What the table of jobs has in each column. */
import type { ComponentChildren } from 'preact';
import { isOver } from '../../../job.ts';
import type { JobSummary, ResultCounts } from '../../contract/events.ts';
import { JobState, MEANINGS, Outside, Time } from '../parts/words.tsx';
import { hashOf } from '../route.ts';
import { ago, bytes, grouped } from '../text/units.ts';
import { type ColumnName, runText } from './list.ts';

export function cellsOf(job: JobSummary, now: number): Record<ColumnName, ComponentChildren> {
  const { jobId, name, owner, submitTime, endTime, grownAt, polledAt, hasResults, results } = job;
  const isFollowed = !isOver(job);
  const polled = polledAt === null ? 'not yet' : ago(polledAt, now);
  return {
    job: (
      <a class="job-link" href={hashOf({ page: 'live', jobId, files: [] })}>
        <strong>{name === null ? jobId : `${jobId} `}</strong>
        {name !== null && <Outside text={name} />}
      </a>
    ),
    state: <JobState job={job} />,
    owner: owner !== null ? <Outside text={owner} /> : isFollowed && 'waits for one',
    submitted: submitTime !== null && <Time time={submitTime} now={now} />,
    runTime: runText(job, now),
    ended: endTime !== null && <Time time={endTime} now={now} />,
    tasks: job.tasks.searching && job.tasks.found === 0 ? 'searching' : grouped(job.tasks.found),
    grown: grownAt === null ? 'no output yet' : ago(grownAt, now),
    size: job.liveBytes > 0 && bytes(job.liveBytes),
    // How old what is shown is.
    polled: <span title={MEANINGS[job.state]}>{isFollowed ? polled : 'settled'}</span>,
    results: !hasResults ? (
      <span class="fine">not fetched</span>
    ) : results.listed === 0 ? (
      <span class="fine">none yet</span>
    ) : (
      <Results counts={results} />
    ),
  };
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
