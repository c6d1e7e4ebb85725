/** How far a task is: the last line of its progress file, as a bar. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { FileState } from '../../contract/events.ts';
import { askStretch } from '../api.ts';
import { ProgressBar } from '../parts/bar.tsx';
import { Outside } from '../parts/words.tsx';
import { decode, shown } from '../text/terminal.ts';
import { type Progress, progressOf } from '../text/values.ts';

/** The last line is within them, or has no progress. */
const TAIL_BYTES = 4_096;
/** Of what is shown of the line. */
const MAX_CHARACTERS = 120;

export function TaskProgress({ jobId, file }: { jobId: string; file: FileState | undefined }) {
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
