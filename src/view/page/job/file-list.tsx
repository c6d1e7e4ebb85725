/**
 * The live files of a job, by task: how long they are, which of them grow, and what stands beside each other, how far
 * each task is.
 */

import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { FileState, JobDetail, TaskDetail } from '../../contract/events.ts';
import { askStretch } from '../api.ts';
import { ProgressBar } from '../parts/bar.tsx';
import { Icon } from '../parts/button.tsx';
import { Failure, Outside } from '../parts/words.tsx';
import { hashOf, type OpenedFile } from '../route.ts';
import { decode, shown } from '../text/terminal.ts';
import { ago, bytes } from '../text/units.ts';
import { type Progress, progressOf } from '../text/values.ts';

/** What grew no longer ago is growing. */
const GROWING_MS = 6_000;
/** So many stand side by side; more cannot be read. */
const MAX_PANES = 6;

interface FileListProps {
  readonly job: JobDetail | undefined;
  readonly jobId: string;
  readonly files: readonly FileState[];
  readonly opened: readonly OpenedFile[];
  readonly now: number;
}

export function FileList({ job, jobId, files, opened, now }: FileListProps) {
  const list = useRef<HTMLElement>(null);
  const shown = opened.map(({ taskId, file }) => `${taskId}/${file}`).join(' ');
  // Where the list is one line, as on a phone, the opened file may lie beside the screen.
  useEffect(() => {
    if (shown !== '') list.current?.querySelector('.open')?.scrollIntoView({ block: 'nearest', inline: 'center' });
  }, [shown]);
  const tasks = [
    ...new Set([...files.map(({ taskId }) => taskId), ...(job?.taskList.map(({ taskId }) => taskId) ?? [])]),
  ];
  return (
    <nav class="file-list" aria-label="Live files" ref={list}>
      {tasks.map((taskId) => (
        <section key={taskId} class="task">
          <TaskHead taskId={taskId} task={job?.taskList.find((task) => task.taskId === taskId)} />
          <TaskProgress jobId={jobId} file={files.find((file) => file.taskId === taskId && file.file === 'progress')} />
          <ul>
            {files
              .filter((file) => file.taskId === taskId)
              .map((file) => (
                <Entry key={file.file} jobId={jobId} file={file} opened={opened} now={now} />
              ))}
          </ul>
        </section>
      ))}
      {tasks.length === 0 && <p class="fine">No live file is known yet.</p>}
    </nav>
  );
}

function TaskHead({ taskId, task }: { taskId: string; task: TaskDetail | undefined }) {
  return (
    <>
      <h2>
        <span class="fine">Task</span> {taskId} {task?.name != null && <Outside text={task.name} />}
        {task?.taskState != null && (
          <span class="fine">
            <Outside text={task.taskState} />
          </span>
        )}
      </h2>
      {task?.errorMessage != null && <Failure trouble={{ message: task.errorMessage, hint: null }} />}
    </>
  );
}

interface EntryProps {
  readonly jobId: string;
  readonly file: FileState;
  readonly opened: readonly OpenedFile[];
  readonly now: number;
}

function Entry({ jobId, file, opened, now }: EntryProps) {
  const { taskId, file: name, grownAt, error } = file;
  const isOpen = opened.some((one) => one.taskId === taskId && one.file === name);
  const isGrowing = grownAt !== null && now - grownAt < GROWING_MS;
  const others = opened.filter((one) => one.taskId !== taskId || one.file !== name);
  const beside = isOpen ? others : [...opened, { taskId, file: name }];
  return (
    <li class={isOpen ? 'open' : ''}>
      <a
        class="file-link"
        href={hashOf({ page: 'live', jobId, files: [{ taskId, file: name }] })}
        aria-current={isOpen ? 'true' : undefined}
        title={grownAt === null ? 'nothing yet' : `grew ${ago(grownAt, now)}`}
      >
        <span class={`pulse ${error !== null ? 'bad' : isGrowing ? 'growing' : ''}`} />
        <span class="file-name">{name}</span>
        <span class="fine">{bytes(file.bytes)}</span>
      </a>
      {(isOpen ? opened.length > 1 : opened.length < MAX_PANES) && (
        <a
          class="icon-button beside"
          href={hashOf({ page: 'live', jobId, files: beside })}
          aria-label={isOpen ? `Close ${name} of task ${taskId}` : `Show ${name} of task ${taskId} beside the others`}
          title={isOpen ? 'Close' : 'Show beside the others'}
        >
          <Icon name={isOpen ? 'close' : 'beside'} />
        </a>
      )}
    </li>
  );
}

/** The last line is within them, or has no progress. */
const TAIL_BYTES = 4_096;
/** Of what is shown of the line. */
const MAX_CHARACTERS = 120;

function TaskProgress({ jobId, file }: { jobId: string; file: FileState | undefined }) {
  const progress = useSignal<Progress | undefined>(undefined);
  const { taskId, version, bytes = 0 } = file ?? {};
  useEffect(() => {
    if (taskId === undefined || version === undefined || bytes === 0) return;
    const stopped = new AbortController();
    const content = { job: jobId, task: taskId, file: 'progress', version } as const;
    askStretch(content, { bytes: TAIL_BYTES }, stopped.signal)
      .then((tail) => {
        const lines = decode(tail.bytes).trimEnd().split('\n');
        const line = shown(lines.at(-1) ?? '').map(({ text }) => text);
        progress.value = progressOf(line.join(''));
      })
      // The next change of the file asks again.
      .catch(() => undefined);
    return () => stopped.abort();
  }, [jobId, taskId, version, bytes, progress]);
  if (progress.value === undefined || bytes === 0) return null;
  const { done, words } = progress.value;
  return (
    <div class="task-progress">
      <ProgressBar done={done} label={`Progress of task ${taskId}`} />
      <span class="fine" title={words.slice(0, MAX_CHARACTERS)}>
        <Outside text={words.slice(0, MAX_CHARACTERS)} />
      </span>
    </div>
  );
}
