/** One row in the tree of results: a directory, a file, or the rest of a directory. */
import type { ComponentChildren } from 'preact';
import type { ResultDirectory, ResultFile, ResultState } from '../../contract/addresses.ts';
import { address } from '../api.ts';
import { live } from '../live.ts';
import { Icon } from '../parts/button.tsx';
import { usePassed } from '../parts/hooks.ts';
import { Outside } from '../parts/words.tsx';
import { hashOf } from '../route.ts';
import { bytes, clock, counted, grouped } from '../text/units.ts';

interface EntryRow {
  readonly entry: ResultDirectory | ResultFile;
  /** The directory that it is in, as `a/b/`; '' for the top. */
  readonly under: string;
  readonly depth: number;
  readonly isOpen: boolean;
}

/** `more`: there are others in this directory. */
export type ResultsRow = EntryRow | { readonly more: string; readonly depth: number };

interface TreeState {
  readonly jobId: string;
  readonly opened: string | undefined;
  readonly arriving: ReadonlyMap<string, number>;
  readonly turn: (directory: string) => void;
  readonly showMore: (under: string) => void;
}

type EntryCells = Record<'name' | 'size' | 'state', ComponentChildren>;

const INDENT_PX = 20;

export function cellsOf(row: ResultsRow, tree: TreeState): EntryCells {
  const cells = 'more' in row ? moreCells(row.more, tree) : entryCells(row, tree);
  const indented = <div style={{ paddingLeft: `${row.depth * INDENT_PX}px` }}>{cells.name}</div>;
  return { ...cells, name: indented };
}

const moreCells = (under: string, { showMore }: TreeState): EntryCells => ({
  name: (
    <button type="button" class="button" onClick={() => showMore(under)}>
      More
    </button>
  ),
  size: null,
  state: null,
});

function entryCells({ entry, under, isOpen }: EntryRow, tree: TreeState): EntryCells {
  // Of a name as it is listed, what stands behind the directory.
  const name = entry.name.startsWith(under) ? entry.name.slice(under.length) : entry.name;
  if (entry.kind === 'file') return fileCells(entry, name, tree);
  const failed = (entry.states.failed ?? 0) + (entry.states.refused ?? 0);
  return {
    name: (
      <button type="button" class="entry-name" aria-expanded={isOpen} onClick={() => tree.turn(entry.name)}>
        <Icon name="folder" />
        <Outside text={name} />
      </button>
    ),
    size: bytes(entry.bytes),
    state: (
      <>
        {counted(entry.files, 'file')}
        {entry.task !== null && <TaskName jobId={tree.jobId} taskId={entry.task} />}
        {failed > 0 && <span class="state bad">{grouped(failed)} failed</span>}
      </>
    ),
  };
}

function TaskName({ jobId, taskId }: { jobId: string; taskId: string }) {
  const tasks = live.details.value.get(jobId)?.tasks.reported;
  const name = tasks?.find((one) => one.taskId === taskId)?.name;
  return (
    <span>
      task {taskId} {name != null && <Outside text={name} />}
    </span>
  );
}

/** The state of a result for people, and how it is coloured. */
export const STATES: Readonly<Record<ResultState, readonly [words: string, kind: string]>> = {
  listed: ['not here yet', 'plain'],
  synced: ['synced', 'over'],
  'in-flux': ['changing', 'active'],
  linked: ['live file', 'plain'],
  failed: ['failed', 'bad'],
  refused: ['unsafe name', 'bad'],
  'left-out': ['left out', 'plain'],
};

/** Of a larger picture, a thumbnail takes too long. */
const MAX_THUMBNAIL_BYTES = 2 * 1024 * 1024;

function fileCells(file: ResultFile, name: string, { jobId, opened, arriving }: TreeState): EntryCells {
  const arrived = arriving.get(file.name);
  const [words, kind] = STATES[file.state];
  const isPicture = file.preview === 'image' && file.state === 'synced' && (file.bytes ?? 0) <= MAX_THUMBNAIL_BYTES;
  return {
    name: (
      <a
        class="entry-name"
        aria-current={opened === file.name ? 'true' : undefined}
        href={hashOf({ page: 'results', jobId, name: file.name })}
        title={[
          file.name,
          file.fetchedAt === null ? 'not fetched yet' : `fetched ${clock(file.fetchedAt)}`,
          file.sha256 === null ? '' : `sha256 ${file.sha256}`,
        ].join('\n')}
      >
        {isPicture ? <Thumbnail jobId={jobId} file={file} /> : <Icon name="file" />}
        <Outside text={name} />
      </a>
    ),
    // That of the last fetch: a listing has none.
    size: file.bytes !== null && bytes(file.bytes),
    state:
      arrived === undefined ? (
        file.state !== 'synced' && (
          <span class={`state ${kind}`} title={file.reason ?? undefined}>
            {words}
          </span>
        )
      ) : (
        <>
          <span class="state active">on its way</span>
          <span>{`${bytes(arrived)} ${file.bytes === null ? 'so far' : `of ${bytes(file.bytes)}`}`}</span>
          {file.bytes !== null && (
            <progress aria-label={`${file.name} on its way`} max={Math.max(1, file.bytes)} value={arrived} />
          )}
        </>
      ),
  };
}

/** An image runs nothing and loads nothing else, whatever is in the file. */
function Thumbnail({ jobId, file: { name, fetchedAt } }: { jobId: string; file: ResultFile }) {
  // The time is for the browser, which keeps what is at an address.
  const src = usePassed(address('preview', { job: jobId, result: name, fetched: fetchedAt ?? undefined }));
  return src === undefined ? <Icon name="file" /> : <img class="thumbnail" src={src} alt="" loading="lazy" />;
}
