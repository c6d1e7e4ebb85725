/** One job of the list. */
import type { JobSummary, ResultCounts } from '../../contract/events.ts';
import { Shares } from '../parts/bar.tsx';
import { Failure, JobState, Outside } from '../parts/words.tsx';
import { hashOf } from '../route.ts';
import { ago, bytes, counted, duration, grouped } from '../text/units.ts';
import { areaPath, curvePath, type Growth, HEIGHT, WIDTH, within } from './list.ts';

export function JobRow({ job, now }: { job: JobSummary; now: number }) {
  return (
    <a class="job-row" href={hashOf({ page: 'live', jobId: job.jobId, files: [] })}>
      <span class="job-name">
        <strong>{job.jobId}</strong>
        {job.name !== null && <Outside text={job.name} />}
      </span>
      <JobState job={job} />
      <span class="job-tasks">
        {job.lookingForTasks && job.tasks === 0 ? 'looking for tasks' : counted(job.tasks, 'task')}
      </span>
      <span class="job-growth">
        <Sparkline growth={job.growth} now={now} />
        <span class="fine">{job.grownAt === null ? 'nothing yet' : `grew ${ago(job.grownAt, now)}`}</span>
      </span>
      <span class="job-bytes">
        {bytes(job.liveBytes)}
        <span class="fine">{counted(job.liveFiles, 'live file')}</span>
      </span>
      <span class="job-lag">{lag(job, now)}</span>
      <span class="job-results">
        {job.results === null ? <span class="fine">off</span> : <Results counts={job.results} />}
      </span>
      {job.error !== null && <Failure trouble={job.error} />}
    </a>
  );
}

/** How old what is shown may be. */
function lag({ state, polledAt, error }: JobSummary, now: number): string {
  if (state === 'ended' || state === 'settled') return 'complete';
  if (polledAt === null) return 'not yet asked';
  return `lag ${duration(now - Math.min(polledAt, error?.since ?? polledAt))}`;
}

export function Results({ counts }: { counts: ResultCounts }) {
  const { listed, synced, inFlux, queued, failed, leftOut } = counts;
  // What changes is here, too, as it was when it was fetched.
  const words = [
    `${grouped(synced)} of ${counted(listed, 'result')} here`,
    inFlux > 0 ? `${grouped(inFlux)} changing` : '',
    queued > 0 ? `${grouped(queued)} on the way` : '',
    failed > 0 ? `${grouped(failed)} failed` : '',
    leftOut > 0 ? `${grouped(leftOut)} left out` : '',
  ].filter((word) => word !== '');
  const shares = [
    { kind: 'done', count: synced - inFlux },
    { kind: 'in-flux', count: inFlux },
    { kind: 'failed', count: failed },
    { kind: 'left', count: Math.max(0, listed - synced - failed) },
  ];
  return (
    <>
      <Shares shares={shares} words={words.join(', ')} />
      <span class="fine">
        {listed === 0 ? 'no results' : `${grouped(synced)} of ${grouped(listed)}`}
        {failed > 0 && <span class="bad"> · {grouped(failed)} failed</span>}
        {counts.bytes > 0 && ` · ${bytes(counts.bytes)}`}
      </span>
    </>
  );
}

function Sparkline({ growth, now }: { growth: Growth; now: number }) {
  const { grown, since } = within(growth, now);
  const label = `${bytes(Math.max(0, grown))} in the last ${duration(now - since)}`;
  return (
    <svg class="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
      <title>{label}</title>
      <path class="area" d={areaPath(growth, now)} />
      <path class="line" d={curvePath(growth, now)} />
    </svg>
  );
}
