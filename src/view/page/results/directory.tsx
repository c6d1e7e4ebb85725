/** One directory of the results, and its opened subdirectories. */
import { useSignal } from '@preact/signals';
import type { ResultDirectory, ResultEntries, ResultFile, ResultState } from '../../contract/addresses.ts';
import { address, askJson } from '../api.ts';
import { useLive } from '../live.ts';
import { Icon } from '../parts/button.tsx';
import { useAnswer } from '../parts/hooks.ts';
import { Failure, Outside } from '../parts/words.tsx';
import { hashOf } from '../route.ts';
import { bytes, clock, counted, grouped } from '../text/units.ts';

interface DirectoryProps {
  readonly jobId: string;
  /** As `a/b/`, '' for the top. */
  readonly under: string;
  /** Another text when the results are others. */
  readonly changed: string;
  readonly opened: string | undefined;
  /** Files on their way, with the bytes that have arrived. */
  readonly arriving: ReadonlyMap<string, number>;
}

export function Directory(props: DirectoryProps) {
  const { jobId, under, changed } = props;
  const count = useSignal(1);
  /** So many pages, as they are now. */
  const load = async () => {
    const all: ResultEntries[] = [];
    while (all.length < count.value && all.at(-1)?.more !== false) {
      const after = all.at(-1)?.entries.at(-1)?.name;
      all.push(await askJson<ResultEntries>(address('results', { job: jobId, under, after })));
    }
    return all;
  };
  const { answer: pages = [], problem } = useAnswer(load, [changed, count.value]);
  const entries = pages.flatMap((page) => page.entries);
  return (
    <ul class="entries">
      {problem !== undefined && (
        <li>
          <Failure error={{ message: problem.message, hint: null }} />
        </li>
      )}
      {entries.map((entry) => (
        <li key={entry.name}>
          {entry.kind === 'directory' ? (
            <Folder {...props} directory={entry} isAlone={entries.length === 1} />
          ) : (
            <File {...props} file={entry} />
          )}
        </li>
      ))}
      {pages.at(-1)?.more === true && (
        <li>
          <button type="button" class="button" onClick={() => count.value++}>
            More
          </button>
        </li>
      )}
      {pages.length > 0 && entries.length === 0 && <li class="fine">The agent has listed no result yet.</li>}
    </ul>
  );
}

interface FolderProps extends DirectoryProps {
  readonly directory: ResultDirectory;
  /** There is nothing else beside it: it is opened. */
  readonly isAlone: boolean;
}

function Folder(props: FolderProps) {
  const { jobId, under, directory } = props;
  const isOpen = useSignal(props.isAlone || (props.opened?.startsWith(directory.name) ?? false));
  const failed = (directory.states.failed ?? 0) + (directory.states.refused ?? 0);
  return (
    <>
      <div class="entry">
        <button
          type="button"
          class="entry-name"
          aria-expanded={isOpen.value}
          onClick={() => (isOpen.value = !isOpen.value)}
        >
          <Icon name="folder" />
          <Outside text={shortName(directory.name, under)} />
        </button>
        {directory.task !== null && <TaskName jobId={jobId} taskId={directory.task} />}
        {failed > 0 && <span class="state bad">{grouped(failed)} failed</span>}
        <span class="fine">
          {counted(directory.files, 'file')}, {bytes(directory.bytes)}
        </span>
      </div>
      {isOpen.value && <Directory {...props} under={directory.name} />}
    </>
  );
}

function TaskName({ jobId, taskId }: { jobId: string; taskId: string }) {
  const task = useLive()
    .details.value.get(jobId)
    ?.taskList.find((one) => one.taskId === taskId);
  return (
    <span class="fine">
      task {taskId} {task?.name != null && <Outside text={task.name} />}
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

function File({ jobId, under, file, opened, arriving }: DirectoryProps & { file: ResultFile }) {
  const isOpen = opened === file.name;
  const arrived = arriving.get(file.name);
  const [words, kind] = STATES[file.state];
  return (
    <div class={`entry ${isOpen ? 'open' : ''}`}>
      <a
        class="entry-name"
        aria-current={isOpen ? 'true' : undefined}
        href={hashOf({ page: 'results', jobId, name: file.name })}
        title={[
          file.name,
          file.fetchedAt === null ? 'not fetched yet' : `fetched ${clock(file.fetchedAt)}`,
          file.sha256 === null ? '' : `sha256 ${file.sha256}`,
        ].join('\n')}
      >
        <Icon name="file" />
        <Outside text={shortName(file.name, under)} />
      </a>
      {arrived !== undefined ? (
        <Arriving arrived={arrived} file={file} />
      ) : (
        <>
          {file.state !== 'synced' && (
            <span class={`state ${kind}`} title={file.reason ?? undefined}>
              {words}
            </span>
          )}
          <span class="fine">{file.bytes === null ? '' : bytes(file.bytes)}</span>
        </>
      )}
    </div>
  );
}

/** The size is that of the last fetch: a listing has none. */
function Arriving({ arrived, file }: { arrived: number; file: ResultFile }) {
  return (
    <>
      <span class="state active">on its way</span>
      {file.bytes !== null && (
        <progress aria-label={`${file.name} on its way`} max={Math.max(1, file.bytes)} value={arrived} />
      )}
      <span class="fine">
        {bytes(arrived)}
        {file.bytes === null ? ' so far' : ` of ${bytes(file.bytes)}`}
      </span>
    </>
  );
}

/** Of a name as it is listed, what stands behind the directory. */
function shortName(name: string, under: string): string {
  return name.startsWith(under) ? name.slice(under.length) : name;
}
