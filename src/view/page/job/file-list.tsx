/** The tasks of a job as a table, each with its live files: a few are all open, many can be filtered, sorted and folded. */
import { signal, useSignal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { FileState } from '../../contract/events.ts';
import { askStretch } from '../api.ts';
import { countsOf, FAILED_FIRST, type Group } from '../jobs/list.ts';
import { live } from '../live.ts';
import { Check, Icon } from '../parts/button.tsx';
import { useAnswer } from '../parts/hooks.ts';
import type { Sort } from '../parts/sort.ts';
import { Chips, Table } from '../parts/table.tsx';
import { Failure, Outside } from '../parts/words.tsx';
import { hashOf, type OpenedFile } from '../route.ts';
import { decode, plainLine } from '../text/terminal.ts';
import { ago, bytes, counted, grouped } from '../text/units.ts';
import { type ProgressValue, progressOf } from '../text/values.ts';
import { COLUMNS, matches, ordered, type TaskRow } from './tasks.ts';

/** More than these are a table that begins folded. */
const FEW_TASKS = 6;
/** What grew no longer ago is growing. */
const GROWING_MS = 6_000;
/** So many stand side by side; more cannot be read. */
const MAX_PANES = 6;

interface FileListProps {
  readonly jobId: string;
  /** False while nothing of the job came. */
  readonly isKnown: boolean;
  readonly tasks: readonly TaskRow[];
  readonly opened: readonly OpenedFile[];
}

type Item = { readonly task: TaskRow; readonly file?: FileState };

const keyOf = ({ task, file }: Item) => `${task.taskId}/${file?.file ?? ''}`;

/** Stays as it is while a user looks at another job. */
const order = signal<Sort<keyof typeof COLUMNS>>(FAILED_FIRST);

export function FileList({ jobId, isKnown, tasks, opened }: FileListProps) {
  const filter = useSignal('');
  const group = useSignal<Group | undefined>(undefined);
  const hasEmpty = useSignal(false);
  /** Tasks that were folded or unfolded by hand. */
  const turned = useSignal<ReadonlySet<string>>(new Set());
  const isMany = tasks.length > FEW_TASKS;
  /** On a small screen, the list gives its room to an open file. */
  const isFolded = useSignal(true);
  useEffect(() => {
    isFolded.value = opened.length > 0;
  }, [JSON.stringify(opened.map(({ taskId, file }) => [taskId, file]))]);
  const isOpen = ({ taskId }: TaskRow) =>
    (!isMany || opened.some((one) => one.taskId === taskId)) !== turned.value.has(taskId);
  const matching = useMemo(() => tasks.filter((task) => matches(task, filter.value)), [tasks, filter.value]);
  const shown = ordered(
    matching.filter((task) => group.value === undefined || task.group === group.value),
    isMany ? order.value : { by: 'task', isDown: false },
  );
  const isListed = ({ taskId, file, bytes: length }: FileState) =>
    !isMany || hasEmpty.value || length > 0 || opened.some((one) => one.taskId === taskId && one.file === file);
  const items = shown.flatMap((task): Item[] => [
    { task },
    ...(isOpen(task) ? task.files.filter(isListed).map((file) => ({ task, file })) : []),
  ]);
  const [first] = opened;
  const empty = tasks.reduce((sum, { files }) => sum + files.filter((file) => file.bytes === 0).length, 0);
  return (
    <nav class={`file-list ${isMany ? 'many' : ''} ${isFolded.value ? 'folded' : ''}`} aria-label="Live files">
      <button
        type="button"
        class="fold unfold-files"
        aria-expanded={!isFolded.value}
        onClick={() => (isFolded.value = !isFolded.value)}
      >
        <Icon name="next" />
        {opened.map(({ taskId, file }) => `${file} of task ${taskId}`).join(', ') || 'Files'}
      </button>
      {isMany && (
        <div class="task-filter">
          <input
            type="search"
            placeholder="Filter: number, name, state, error"
            aria-label="Filter tasks"
            value={filter.value}
            onInput={(event) => (filter.value = event.currentTarget.value)}
          />
          <Chips
            counts={countsOf(matching.map((task) => task.group))}
            chosen={group.value}
            onChoose={(chosen) => (group.value = chosen)}
          />
          <span class="fine" role="status">
            {shown.length === tasks.length
              ? counted(tasks.length, 'task')
              : `${grouped(shown.length)} of ${counted(tasks.length, 'task')}`}
          </span>
          {empty > 0 && <Check value={hasEmpty}>{counted(empty, 'empty file')}</Check>}
        </div>
      )}
      <Table
        kind="task"
        label="Tasks"
        columns={isMany ? COLUMNS : undefined}
        sort={order}
        rows={items}
        keyOf={keyOf}
        shownKey={first === undefined ? undefined : `${first.taskId}/${first.file}`}
        cells={({ task, file }) =>
          file === undefined
            ? taskCells(jobId, task, isOpen(task), () => {
                const now = new Set(turned.value);
                if (!now.delete(task.taskId)) now.add(task.taskId);
                turned.value = now;
              })
            : { file: <Entry jobId={jobId} file={file} opened={opened} /> }
        }
      >
        {isKnown && tasks.length === 0 && (
          <p class="fine">The agent has found no live file yet: they appear when a task starts.</p>
        )}
        {tasks.length > 0 && shown.length === 0 && <p class="fine">No task matches: clear the filter.</p>}
      </Table>
    </nav>
  );
}

function taskCells(jobId: string, task: TaskRow, isOpen: boolean, onTurn: () => void) {
  const now = live.now.value;
  const { taskId, reported, group, grownAt, files } = task;
  const { name = null, taskState = null, errorMessage = null } = reported ?? {};
  return {
    task: (
      <button type="button" class="fold" aria-expanded={isOpen} onClick={onTurn}>
        <Icon name="next" />
        <span class="fine task-word">Task</span> {taskId} {name !== null && <Outside text={name} />}
      </button>
    ),
    state: (
      <span class={group === 'failed' || group === 'error' ? 'bad' : 'fine'}>
        {taskState !== null && <Outside text={taskState} />}
      </span>
    ),
    grown: grownAt === null ? task.bytes === 0 && 'no output' : ago(grownAt, now),
    size: task.bytes > 0 && bytes(task.bytes),
    more: (
      <>
        {errorMessage !== null && <Failure error={{ message: errorMessage }} />}
        <TaskProgress jobId={jobId} file={files.find(({ file }) => file === 'progress')} />
      </>
    ),
  };
}

interface EntryProps {
  readonly jobId: string;
  readonly file: FileState;
  readonly opened: readonly OpenedFile[];
}

function Entry({ jobId, file, opened }: EntryProps) {
  const now = live.now.value;
  const { taskId, file: name, grownAt, error } = file;
  const isOpen = opened.some((one) => one.taskId === taskId && one.file === name);
  const isGrowing = grownAt !== null && now - grownAt < GROWING_MS;
  const others = opened.filter((one) => one.taskId !== taskId || one.file !== name);
  const beside = isOpen ? others : [...opened, { taskId, file: name }];
  return (
    <div class={`file ${isOpen ? 'open' : ''}`}>
      <a
        class="file-link"
        href={hashOf({ page: 'live', jobId, files: [{ taskId, file: name }] })}
        aria-current={isOpen ? 'true' : undefined}
        title={grownAt === null ? 'no output yet' : `grew ${ago(grownAt, now)}`}
      >
        <span class={`pulse ${error !== null ? 'bad' : isGrowing ? 'growing' : ''}`} />
        <span class="file-name">{name}</span>
        <span class="fine">{file.bytes === 0 ? 'empty' : bytes(file.bytes)}</span>
      </a>
      {(isOpen ? opened.length > 1 : opened.length < MAX_PANES) && (
        <a
          class="icon-button"
          href={hashOf({ page: 'live', jobId, files: beside })}
          aria-label={isOpen ? `Close ${name} of task ${taskId}` : `Show ${name} of task ${taskId} beside the others`}
          title={isOpen ? 'Close' : 'Show beside the others'}
        >
          <Icon name={isOpen ? 'close' : 'beside'} />
        </a>
      )}
    </div>
  );
}

/** The last line is within them, or has no progress. */
const TAIL_BYTES = 4_096;
/** An emptied file shows its last bar for so long. */
const MAX_EMPTY_MS = 15_000;
/** Of what is shown of the line. */
const MAX_CHARACTERS = 120;

/** How far a task is: the last line of its progress file, as a bar. */
function TaskProgress({ jobId, file }: { jobId: string; file: FileState | undefined }) {
  const { taskId, version, bytes: length = 0 } = file ?? {};
  const now = live.now.value;
  const last = useRef<ProgressValue | undefined>(undefined);
  const isEmpty = length === 0;
  const ask = async () => {
    if (taskId === undefined || version === undefined) return undefined;
    if (isEmpty) return last.current;
    const content = { job: jobId, task: taskId, file: 'progress', version } as const;
    const tail = await askStretch(content, { bytes: TAIL_BYTES });
    const line = decode(tail.bytes).trimEnd().split('\n').at(-1) ?? '';
    last.current = progressOf(plainLine(line));
    return last.current;
  };
  const { answer } = useAnswer(ask, [jobId, taskId, version, length]);
  // What rewrites the file leaves it empty for a moment.
  if (answer === undefined || (isEmpty && now - (file?.grownAt ?? 0) > MAX_EMPTY_MS)) return null;
  const { done, words } = answer;
  return (
    <div class="task-progress">
      <progress aria-label={`Progress of task ${taskId}`} value={done} />
      <span class="fine" title={words.slice(0, MAX_CHARACTERS)}>
        <Outside text={words.slice(0, MAX_CHARACTERS)} />
      </span>
    </div>
  );
}
