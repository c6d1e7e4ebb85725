/** The results of a job: a tree of what is listed, and one of them opened beside it. */
import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import type { ResultEntries } from '../../contract/addresses.ts';
import type { JobDetail } from '../../contract/events.ts';
import { address, askJson } from '../api.ts';
import { Results } from '../jobs/job-row.tsx';
import { live } from '../live.ts';
import { notePictures } from '../navigation.ts';
import { useAnswer } from '../parts/hooks.ts';
import { Table } from '../parts/table.tsx';
import { Failure } from '../parts/words.tsx';
import type { ResultsRoute } from '../route.ts';
import { cellsOf, type ResultsRow } from './entry.tsx';
import { LastSync, ResultView } from './result-view.tsx';

/** Another text when the results are others; the same while a file is on its way. */
export function versionOf({ results: { arriving: _, lastSync, ...counts } }: JobDetail): string {
  return JSON.stringify([counts, lastSync?.endedAt]);
}

export function ResultsPage({ route: { jobId, name } }: { route: ResultsRoute }) {
  const job = live.details.value.get(jobId);
  if (job?.hasResults === false)
    return (
      <p class="empty">
        The agent does not fetch the results of this job: it was started with <code>agent watch --no-results</code>.
      </p>
    );
  const changed = job === undefined ? '' : versionOf(job);
  return (
    <div class={`results ${name === undefined ? '' : 'has-open'}`}>
      <section class="tree" aria-label="Results">
        <div class="tree-head">
          {job !== undefined && <Results counts={job.results} />}
          {job !== undefined && <LastSync job={job} />}
        </div>
        <Tree jobId={jobId} changed={changed} opened={name} arriving={new Map(job?.results.arriving)} />
      </section>
      {name !== undefined && <Opened key={name} jobId={jobId} name={name} changed={changed} />}
    </div>
  );
}

interface TreeProps {
  readonly jobId: string;
  readonly changed: string;
  readonly opened: string | undefined;
  /** Files on their way, with the bytes that have arrived. */
  readonly arriving: ReadonlyMap<string, number>;
}

function Tree({ jobId, changed, opened, arriving }: TreeProps) {
  /** Directories that were opened or closed by hand, and how many pages of each are shown. */
  const turned = useSignal<ReadonlySet<string>>(new Set());
  const pages = useSignal<ReadonlyMap<string, number>>(new Map());
  const first = useRef(opened);
  const isOpen = (directory: string, isAlone: boolean) =>
    (isAlone || first.current?.startsWith(directory) === true) !== turned.value.has(directory);
  /** As they are now, directory by directory. */
  const loadAll = async () => {
    const rows: ResultsRow[] = [];
    const load = async (under: string, depth: number) => {
      const all: ResultEntries[] = [];
      while (all.length < (pages.value.get(under) ?? 1) && all.at(-1)?.more !== false) {
        const after = all.at(-1)?.entries.at(-1)?.name;
        all.push(await askJson<ResultEntries>(address('results', { job: jobId, under, after })));
      }
      const entries = all.flatMap((page) => page.entries);
      for (const entry of entries) {
        const unfolded = entry.kind === 'directory' && isOpen(entry.name, entries.length === 1);
        rows.push({ entry, under, depth, isOpen: unfolded });
        if (unfolded) await load(entry.name, depth + 1);
      }
      if (all.at(-1)?.more === true) rows.push({ more: under, depth });
    };
    await load('', 0);
    return rows;
  };
  const { answer: rows, problem } = useAnswer(loadAll, [changed, turned.value, pages.value]);
  notePictures(
    (rows ?? []).flatMap((row) =>
      'entry' in row && row.entry.kind === 'file' && row.entry.preview === 'image' ? row.entry.name : [],
    ),
  );
  const act = {
    turn: (directory: string) => {
      const now = new Set(turned.value);
      if (!now.delete(directory)) now.add(directory);
      turned.value = now;
    },
    showMore: (under: string) => {
      pages.value = new Map(pages.value).set(under, (pages.value.get(under) ?? 1) + 1);
    },
  };
  return (
    <Table
      kind="entry"
      label="Files"
      rows={rows ?? []}
      keyOf={(row) => ('more' in row ? `more ${row.more}` : row.entry.name)}
      classOf={(row) => ('entry' in row && row.entry.name === opened ? 'open' : '')}
      cells={(row) => cellsOf(row, { jobId, opened, arriving, ...act })}
    >
      {problem !== undefined && <Failure error={problem} />}
      {rows?.length === 0 && <p class="fine">The agent has listed no result yet.</p>}
    </Table>
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
