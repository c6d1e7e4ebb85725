/** Everything that is followed. */
import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { useLive } from '../live.ts';
import { useVirtual } from '../parts/use-virtual.ts';
import { counted, grouped } from '../text/units.ts';
import { JobRow } from './job-row.tsx';
import { matches, ordered } from './list.ts';

const ROW_PX = 68;

export function JobsPage() {
  const live = useLive();
  const filter = useSignal('');
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => live.look({ jobs: '1' }), [live]);
  // A user who sees the page can use its keys.
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== '/' || event.target instanceof HTMLInputElement) return;
      event.preventDefault();
      field.current?.focus();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, []);
  const all = live.jobs.value;
  const shown = all === undefined ? [] : ordered(all.values()).filter((job) => matches(job, filter.value));
  return (
    <main class="jobs-page">
      <div class="page-head">
        <h1>Jobs</h1>
        <input
          ref={field}
          type="search"
          placeholder="Filter: number, name, state, error"
          aria-label="Filter jobs"
          title="Filter (/)"
          value={filter.value}
          onInput={(event) => {
            filter.value = event.currentTarget.value;
          }}
        />
        <span class="fine" role="status">
          {all === undefined
            ? 'loading'
            : filter.value === ''
              ? counted(all.size, 'job')
              : `${grouped(shown.length)} of ${counted(all.size, 'job')}`}
        </span>
      </div>
      {all?.size === 0 ? <Nothing /> : <List jobs={shown} />}
    </main>
  );
}

function List({ jobs }: { jobs: ReturnType<typeof ordered> }) {
  const live = useLive();
  const scroller = useRef<HTMLDivElement>(null);
  const list = useVirtual({
    count: jobs.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    getItemKey: (index) => jobs[index]?.jobId ?? index,
    overscan: 8,
  });
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keys
    <section class="job-list" ref={scroller} tabIndex={0} aria-label="Jobs">
      <ul style={{ height: `${list.getTotalSize()}px` }}>
        {list.getVirtualItems().map(({ index, key, start }) => {
          const job = jobs[index];
          return (
            job !== undefined && (
              <li
                key={key}
                data-index={index}
                ref={list.measureElement}
                style={{ transform: `translateY(${start}px)` }}
              >
                <JobRow job={job} now={live.now.value} />
              </li>
            )
          );
        })}
      </ul>
    </section>
  );
}

function Nothing() {
  return (
    <div class="empty">
      <p>No job is followed yet.</p>
      <p>
        <code>agent watch JOB</code> follows one, <code>agent watch --mine</code> all of yours.
      </p>
    </div>
  );
}
