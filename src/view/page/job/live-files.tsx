/** The live files of a job: a list of all, and some of them side by side. */
import { useMemo, useRef } from 'preact/hooks';
import type { LiveFileName } from '../../contract/addresses.ts';
import type { FileState } from '../../contract/events.ts';
import { useLive } from '../live.ts';
import { hashOf, type LiveRoute, type OpenedFile } from '../route.ts';
import { FileList } from './file-list.tsx';
import { LivePane } from './live-pane.tsx';

export function LiveFiles({ route }: { route: LiveRoute }) {
  const live = useLive();
  const { jobId } = route;
  const files = live.files.value.get(jobId);
  const chosen = useRef<OpenedFile | undefined>(undefined);
  // Chosen once: nobody's file goes away under the eyes.
  chosen.current ??= firstOf(files ?? []);
  const opened = useMemo(
    () => (route.files.length > 0 ? route.files : chosen.current === undefined ? [] : [chosen.current]),
    [route.files, chosen.current],
  );
  return (
    <div class="live-files">
      <FileList
        job={live.details.value.get(jobId)}
        jobId={jobId}
        files={files ?? []}
        opened={opened}
        now={live.now.value}
      />
      <div class={`panes panes-${Math.min(opened.length, 3)}`}>
        {opened.map((file) => (
          <LivePane
            key={`${jobId}/${keyOf(file)}`}
            jobId={jobId}
            opened={file}
            state={files?.find((one) => one.taskId === file.taskId && one.file === file.file)}
            onShow={(version) => {
              location.hash = hashOf({
                ...route,
                files: opened.map((one) => (one === file ? without(file, version) : one)),
              });
            }}
            onSelect={(at) => {
              const marked = opened.map((one) => (one === file ? { ...one, at } : one));
              // For a link to it: nothing is opened anew.
              history.replaceState(null, '', hashOf({ ...route, files: marked }));
            }}
          />
        ))}
        {files !== undefined && opened.length === 0 && <p class="empty">No live file is known yet.</p>}
      </div>
    </div>
  );
}

const keyOf = ({ taskId, file, version }: OpenedFile) => `${taskId}/${file}:${version ?? ''}`;

const without = ({ taskId, file }: OpenedFile, version: string | undefined): OpenedFile => ({ taskId, file, version });

function firstOf(files: readonly FileState[]): OpenedFile | undefined {
  const order: readonly LiveFileName[] = ['stdout', 'log', 'stderr', 'progress'];
  const [last] = [...files].sort(
    (a, b) => Number(b.bytes > 0) - Number(a.bytes > 0) || order.indexOf(a.file) - order.indexOf(b.file),
  );
  return last === undefined ? undefined : { taskId: last.taskId, file: last.file };
}
