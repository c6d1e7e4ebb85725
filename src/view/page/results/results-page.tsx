/** The results of a job: a tree of what is listed, and one of them opened beside it. */
import type { ResultEntries } from '../../contract/addresses.ts';
import { address, askJson } from '../api.ts';
import { Results } from '../jobs/job-row.tsx';
import { useLive } from '../live.ts';
import { useAnswer } from '../parts/hooks.ts';
import { Failure } from '../parts/words.tsx';
import type { ResultsRoute } from '../route.ts';
import { Directory } from './directory.tsx';
import { LastSync, ResultView } from './result-view.tsx';

export function ResultsPage({ route: { jobId, name } }: { route: ResultsRoute }) {
  const live = useLive();
  const job = live.details.value.get(jobId);
  if (job?.hasResults === false)
    return (
      <p class="empty">
        The agent does not fetch the results of this job: it was started with <code>agent watch --no-results</code>.
      </p>
    );
  /** Another text when the results are others. */
  const changed = JSON.stringify([job?.results, job?.lastSync?.endedAt]);
  return (
    <div class={`results ${name === undefined ? '' : 'has-open'}`}>
      <section class="tree" aria-label="Results">
        <div class="tree-head">
          {job?.results != null && <Results counts={job.results} />}
          {job !== undefined && <LastSync job={job} />}
        </div>
        <Directory jobId={jobId} under="" changed={changed} opened={name} arriving={new Map(job?.lastSync?.arriving)} />
      </section>
      {name !== undefined && <Opened key={name} jobId={jobId} name={name} changed={changed} />}
    </div>
  );
}

/** The result that the address names, as it is now. */
function Opened({ jobId, name, changed }: { jobId: string; name: string; changed: string }) {
  const ask = () => askJson<ResultEntries>(address('results', { job: jobId, name }));
  const { answer, problem } = useAnswer(ask, [jobId, name, changed]);
  const [file] = answer?.entries ?? [];
  // The same bytes that were fetched again leave what a reader does with them as it is.
  if (file?.kind === 'file') return <ResultView key={file.sha256 ?? file.fetchedAt ?? ''} jobId={jobId} file={file} />;
  return problem === undefined ? null : (
    <section class="result" aria-label="Result">
      <Failure error={{ message: problem.message, hint: 'choose another result, or wait for the next listing' }} />
    </section>
  );
}
