/** One job: what it is, its live files, its results. */
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import type { JobDetail } from '../../contract/events.ts';
import { runText } from '../jobs/list.ts';
import { live } from '../live.ts';
import { Icon } from '../parts/button.tsx';
import { Fact, Failure, JobState, Outside, OwnFailure, Time } from '../parts/words.tsx';
import { hashOf, type Route } from '../route.ts';
import { counted, grouped } from '../text/units.ts';

interface JobPageProps {
  readonly jobId: string;
  readonly tab: 'live' | 'results';
  readonly children: ComponentChildren;
}

export function JobPage({ jobId, tab, children }: JobPageProps) {
  useEffect(() => live.subscribe({ job: [jobId] }), [jobId]);
  const job = live.details.value.get(jobId);
  const isMissing = live.missing.value.has(jobId);
  return (
    <main class="job-page">
      <header class="job-head">
        <a class="icon-button" href={hashOf({ page: 'jobs' })} aria-label="All jobs" title="All jobs">
          <Icon name="back" />
        </a>
        <h1>
          <span class="fine">Job </span>
          {job?.name == null ? jobId : `${jobId} `}
          {job?.name != null && <Outside text={job.name} />}
        </h1>
        {!isMissing && (
          <nav class="tabs" aria-label="Of this job">
            <Tab isOpen={tab === 'live'} route={{ page: 'live', jobId, files: [] }}>
              Live
            </Tab>
            <Tab isOpen={tab === 'results'} route={{ page: 'results', jobId }}>
              Results
              {job?.hasResults && <span class="badge">{grouped(job.results.listed)}</span>}
            </Tab>
          </nav>
        )}
        {job !== undefined && (
          <div class="job-facts">
            <JobState job={job} />
            <Times job={job} now={live.now.value} />
          </div>
        )}
      </header>
      {job !== undefined && <FailedTasks job={job} />}
      <OwnFailure error={job?.firstError} />
      {job?.unproven != null && job.unproven.length > 0 && <Unproven reasons={job.unproven} />}
      {job?.isElsewhere && <Elsewhere job={job} />}
      {job?.tasks.hint != null && (
        <Failure error={{ message: 'The agent has found no task yet.', hint: job.tasks.hint }} />
      )}
      {isMissing ? (
        <p class="empty">
          The agent does not follow job {jobId}. Run <code>agent watch {jobId}</code> to follow it.
        </p>
      ) : (
        children
      )}
    </main>
  );
}

/** Why it failed, where the list of tasks is folded (styles/pages.css). */
function FailedTasks({ job: { tasks } }: { job: JobDetail }) {
  const [first, ...others] = tasks.reported.filter(({ errorMessage }) => errorMessage !== null);
  if (first === undefined) return null;
  const more = others.length === 0 ? '' : ` (and ${counted(others.length, 'other task')})`;
  const message = `Task ${first.taskId}: ${first.errorMessage}${more}`;
  return (
    <div class="failed-tasks">
      <Failure error={{ message }} />
    </div>
  );
}

const MAX_REASONS = 5;

function Unproven({ reasons }: { reasons: readonly string[] }) {
  const more = reasons.length - MAX_REASONS;
  return (
    <ul class="notice">
      {reasons.slice(0, MAX_REASONS).map((reason) => (
        <li key={reason}>
          Not proven: <Outside text={reason} />
        </li>
      ))}
      {more > 0 && <li>... and {grouped(more)} more</li>}
    </ul>
  );
}

/** Where the bytes are that this machine does not have. */
function Elsewhere({ job: { jobId, owner } }: { job: JobDetail }) {
  const agent = live.fleet.value?.agents.find(({ name }) => name === owner);
  return (
    <p class="notice">
      <span>
        The mirrors of job {jobId} are{' '}
        {owner === null ? (
          'on another machine. They are shown once an agent owns the job.'
        ) : (
          <>
            at the agent <Outside text={owner} /> (host <Outside text={agent?.host ?? 'unknown'} />
            ). Run <code>agent view</code> there.
          </>
        )}
      </span>
    </p>
  );
}

function Tab({ isOpen, route, children }: { isOpen: boolean; route: Route; children: ComponentChildren }) {
  return (
    <a class="tab" href={hashOf(route)} aria-current={isOpen ? 'page' : undefined}>
      {children}
    </a>
  );
}

/** The times that the middleware reports, and who follows the job in a fleet. */
function Times({ job, now }: { job: JobDetail; now: number }) {
  const { owner, submitTime, startTime, endTime } = job;
  const run = runText(job, now);
  const times = [
    ['submitted', submitTime],
    ['started', startTime],
    ['ended', endTime],
  ] as const;
  return (
    <dl class="times">
      {owner !== null && (
        <Fact word="agent">
          <Outside text={owner} />
        </Fact>
      )}
      {run !== '' && <Fact word="run time">{run}</Fact>}
      {times.map(
        ([word, time]) =>
          time !== null && (
            <Fact key={word} word={word}>
              <Time time={time} now={now} />
            </Fact>
          ),
      )}
    </dl>
  );
}
