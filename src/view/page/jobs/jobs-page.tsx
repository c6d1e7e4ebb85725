/** Everything that is followed, as a table. */
import { signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import type { JobSummary } from '../../contract/events.ts';
import { isOwn } from '../condition.ts';
import { live } from '../live.ts';
import type { Sort } from '../parts/sort.ts';
import { Chips, Table } from '../parts/table.tsx';
import { OwnFailure } from '../parts/words.tsx';
import { hashOf } from '../route.ts';
import { counted, grouped } from '../text/units.ts';
import { cellsOf } from './job-row.tsx';
import { COLUMNS, type ColumnName, countsOf, FAILED_FIRST, type Group, groupOf, matches, ordered } from './list.ts';

/** Stays as it is while a user looks at a job, and comes back. */
const chosen = {
  filter: signal(''),
  group: signal<Group | undefined>(undefined),
  sort: signal<Sort<ColumnName>>(FAILED_FIRST),
};

type ListedJobs = ReadonlyMap<string, JobSummary> | undefined;

const matchingOf = (all: ListedJobs) => [...(all?.values() ?? [])].filter((job) => matches(job, chosen.filter.value));

function shownOf(matching: readonly JobSummary[], now: number): readonly JobSummary[] {
  const { group, sort } = chosen;
  const ofGroup = matching.filter((job) => group.value === undefined || groupOf(job) === group.value);
  return ordered(ofGroup, sort.value, now);
}

export function JobsPage() {
  useEffect(() => live.subscribe({ jobs: '1' }), []);
  const all = live.jobs.value;
  const { filter, group, sort } = chosen;
  const matching = useMemo(() => matchingOf(all), [all, filter.value]);
  const counts = useMemo(() => countsOf(matching.map(groupOf)), [matching]);
  const shown = useMemo(() => shownOf(matching, live.now.peek()), [matching, group.value, sort.value]);
  /** Also before the list is drawn for the last key. */
  const openFirst = () => {
    const [first] = shownOf(matchingOf(all), live.now.peek());
    if (first === undefined) return;
    location.hash = hashOf({ page: 'live', jobId: first.jobId, files: [] });
    filter.value = '';
  };
  const condition = live.condition.value;
  const now = live.now.value;
  const hasError = ({ firstError }: JobSummary) => firstError !== null && isOwn(firstError, condition);
  return (
    <main class="jobs-page">
      <div class="page-head">
        <h1>Jobs</h1>
        <input
          type="search"
          placeholder="Filter: number, name, state, error"
          aria-label="Filter jobs"
          title="Filter (/); Enter opens the first job"
          value={filter.value}
          onInput={(event) => (filter.value = event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter') openFirst();
          }}
        />
        <Chips counts={counts} chosen={group.value} onChoose={(name) => (group.value = name)} />
        <span class="fine" role="status">
          {all === undefined
            ? 'loading'
            : shown.length === all.size
              ? counted(all.size, 'job')
              : `${grouped(shown.length)} of ${counted(all.size, 'job')}`}
        </span>
      </div>
      {all?.size === 0 ? (
        <Nothing />
      ) : (
        <div class={`jobs ${live.fleet.value === undefined ? '' : 'in-fleet'}`}>
          <Table
            kind="job"
            label="Jobs"
            columns={COLUMNS}
            sort={sort}
            rows={shown}
            keyOf={({ jobId }) => jobId}
            classOf={(job) => (hasError(job) ? 'has-error' : '')}
            cells={(job) => ({
              ...cellsOf(job, now),
              ...(hasError(job) && { error: <OwnFailure error={job.firstError} /> }),
            })}
          />
        </div>
      )}
    </main>
  );
}

function Nothing() {
  const fleet = live.fleet.value;
  return (
    <div class="empty">
      <p>{fleet === undefined ? 'The agent follows no job yet.' : 'The agents of the fleet follow no job yet.'}</p>
      <p>
        Run <code>agent watch JOB</code> to follow one, <code>agent watch --mine</code> to follow all of yours.
      </p>
    </div>
  );
}
