/** The results of a job: a tree of what is listed, and one of them opened beside it. */
import { useSignal } from '@preact/signals';
import { useCallback } from 'preact/hooks';
import type { ResultFile } from '../../contract/addresses.ts';
import type { JobDetail } from '../../contract/events.ts';
import { address } from '../api.ts';
import { Results } from '../jobs/job-row.tsx';
import { useLive } from '../live.ts';
import { ProgressBar } from '../parts/bar.tsx';
import { Icon } from '../parts/button.tsx';
import { Failure } from '../parts/words.tsx';
import { bytes, counted, grouped } from '../text/units.ts';
import { Directory } from './directory.tsx';
import { ResultView } from './result-view.tsx';

export function ResultsPage({ jobId }: { jobId: string }) {
  const live = useLive();
  const opened = useSignal<ResultFile | undefined>(undefined);
  const job = live.details.value.get(jobId);
  const open = useCallback(
    (file: ResultFile) => {
      opened.value = file;
    },
    [opened],
  );
  if (job?.results === null)
    return <p class="empty">Results of this job are not fetched (`agent watch --no-results`).</p>;
  return (
    <div class={`results ${opened.value === undefined ? '' : 'has-open'}`}>
      <section class="tree" aria-label="Results">
        <div class="tree-head">
          {job?.results != null && <Results counts={job.results} />}
          {job !== undefined && <OnTheWay job={job} />}
          <a class="button" href={address('archive', { job: jobId, under: '' })} download>
            <Icon name="download" /> All as zip
          </a>
        </div>
        <Directory
          jobId={jobId}
          under=""
          changed={JSON.stringify([job?.results, job?.lastLook?.endedAt])}
          opened={opened.value?.name}
          onOpen={open}
        />
      </section>
      {opened.value !== undefined && (
        <ResultView
          key={`${opened.value.name}@${opened.value.fetchedAt ?? ''}`}
          jobId={jobId}
          file={opened.value}
          onClose={() => {
            opened.value = undefined;
          }}
        />
      )}
    </div>
  );
}

/** What comes right now, and how fast. */
function OnTheWay({ job: { lastLook } }: { job: JobDetail }) {
  if (lastLook === null) return <span class="fine">no sync yet</span>;
  const { done, wanted, wantedBytes, way, bytesPerSecond, endedAt, fallback } = lastLook;
  const by = way === null ? '' : ` by ${way === 'soap' ? 'the service' : way}`;
  const rate = bytesPerSecond > 0 ? `, ${bytes(bytesPerSecond)}/s${by}` : by;
  return (
    <>
      {endedAt === null && wanted > 0 && (
        <ProgressBar
          done={wantedBytes === null ? done / wanted : lastLook.bytes / Math.max(1, wantedBytes)}
          label="Results in progress"
        />
      )}
      <span class="fine">
        {endedAt === null ? 'in progress: ' : 'last sync: '}
        {grouped(done)} of {counted(wanted, 'file')}, {bytes(lastLook.bytes)}
        {endedAt === null && wantedBytes !== null && ` of ${bytes(wantedBytes)}`}
        {rate}
      </span>
      {fallback !== null && <Failure trouble={{ message: 'not directly', hint: fallback }} />}
    </>
  );
}
