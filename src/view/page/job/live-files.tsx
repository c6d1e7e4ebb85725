/** The live files of a job: a list of all, and some of them side by side. */
import { useCallback, useMemo, useRef } from 'preact/hooks';
import { isOver } from '../../../job.ts';
import type { Generations, LiveFileName } from '../../contract/addresses.ts';
import type { FileState } from '../../contract/events.ts';
import type { OpenFile } from '../file/open-file.ts';
import { live } from '../live.ts';
import { Pane } from '../pane/pane.tsx';
import { Failure, OwnFailure } from '../parts/words.tsx';
import { fileText, hashOf, type LiveRoute, type OpenedFile } from '../route.ts';
import { bytes } from '../text/units.ts';
import { FileList } from './file-list.tsx';
import { type Resolved, resolved, useGenerations, Why } from './generations.tsx';
import { firstOf, taskRows } from './tasks.ts';

export function LiveFiles({ route }: { route: LiveRoute }) {
  const { jobId } = route;
  const files = live.files.value.get(jobId);
  const chosen = useRef<OpenedFile | undefined>(undefined);
  const job = live.details.value.get(jobId);
  const tasks = useMemo(() => taskRows(job, files ?? []), [job, files]);
  // Chosen once: a file never disappears while a user reads it.
  chosen.current ??= firstOf(tasks);
  const opened = useMemo(
    () => (route.files.length > 0 ? route.files : chosen.current === undefined ? [] : [chosen.current]),
    [route.files, chosen.current],
  );
  const shown = job?.isElsewhere === true ? [] : opened;
  return (
    <div class="live-files">
      <FileList jobId={jobId} isKnown={files !== undefined} tasks={tasks} opened={opened} />
      <div class={`panes panes-${Math.min(shown.length, 3)}`}>
        {shown.map((file) => (
          <LivePane
            key={`${jobId}/${fileText(file)}`}
            jobId={jobId}
            opened={file}
            canGrow={job === undefined || !isOver(job)}
            state={files?.find((one) => one.taskId === file.taskId && one.file === file.file)}
            onSelect={(at, to, version) => {
              const lines = { at, to: to === at ? undefined : to, version };
              const marked = opened.map((one) => (one === file ? { ...one, ...lines } : one));
              // For a link to it: nothing is opened anew.
              history.replaceState(null, '', hashOf({ ...route, files: marked }));
            }}
          />
        ))}
      </div>
    </div>
  );
}

interface LivePaneProps {
  readonly jobId: string;
  readonly opened: OpenedFile;
  readonly canGrow: boolean;
  readonly state: FileState | undefined;
  readonly onSelect: (from: number, to: number, version: string) => void;
}

function LivePane(props: LivePaneProps) {
  const { jobId, opened, state } = props;
  const { answer: generations, problem } = useGenerations(jobId, opened, state?.generation);
  // Found once: what becomes of it later is shown in the pane.
  const found = useRef<Resolved | undefined>(undefined);
  found.current ??= resolved(opened, generations);
  if (found.current === undefined && problem !== undefined) return <Failure error={problem} />;
  if (found.current === undefined) return <p class="empty">Looking for the generation of this link …</p>;
  return <FoundPane {...props} {...found.current} generations={generations} />;
}

type FoundPaneProps = LivePaneProps & Resolved & { readonly generations: Generations | undefined };

function FoundPane({ jobId, opened, canGrow, state, generations, isGone, onSelect }: FoundPaneProps) {
  const { taskId, file, version, at, to } = opened;
  const isWatched = version === undefined;
  const former = generations?.former.find((one) => one.version === version);
  const content = useMemo(
    () => ({ job: jobId, task: taskId, file: file as LiveFileName, ...(version === undefined ? {} : { version }) }),
    [jobId, taskId, file, version],
  );
  const watch = useCallback(
    (open: OpenFile) => live.watchFile(`${jobId}/${taskId}/${file}`, (length) => open.announce(length)),
    [jobId, taskId, file],
  );
  return (
    <Pane
      content={content}
      opening={{ version, at, to, follows: isWatched && at === undefined }}
      label={`${file} of task ${taskId}`}
      canGrow={isWatched && canGrow}
      {...(isWatched ? { watch } : {})}
      onSelect={onSelect}
      title={
        <header class="pane-head">
          <h2>
            <span class="fine">{taskId}</span> {file}
          </h2>
          {isWatched
            ? state !== undefined && <Badges state={state} />
            : former !== undefined && <span class="fine">{bytes(former.bytes)}</span>}
        </header>
      }
    >
      <OwnFailure error={state?.error} />
      {isGone && (
        <p class="notice">The generation of this link was rotated, and is not kept. This is the present one.</p>
      )}
      {generations !== undefined && <Why jobId={jobId} opened={opened} generations={generations} />}
    </Pane>
  );
}

function Badges({ state: { bytes: length, verified } }: { state: FileState }) {
  return (
    <>
      <span class="fine">{bytes(length)}</span>
      {verified && (
        <span class="badge good" title="all of it was compared with the raw bytes of the server">
          verified
        </span>
      )}
    </>
  );
}
