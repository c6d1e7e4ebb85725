/** How far a task is: the last line of its progress file, as a bar. */
import type { FileState } from '../../contract/events.ts';
import { askStretch } from '../api.ts';
import { ProgressBar } from '../parts/bar.tsx';
import { useAnswer } from '../parts/hooks.ts';
import { Outside } from '../parts/words.tsx';
import { decode, plainLine } from '../text/terminal.ts';
import { progressOf } from '../text/values.ts';

/** The last line is within them, or has no progress. */
const TAIL_BYTES = 4_096;
/** Of what is shown of the line. */
const MAX_CHARACTERS = 120;

export function TaskProgress({ jobId, file }: { jobId: string; file: FileState | undefined }) {
  const { taskId, version, bytes = 0 } = file ?? {};
  const ask = async (signal: AbortSignal) => {
    if (taskId === undefined || version === undefined || bytes === 0) return undefined;
    const content = { job: jobId, task: taskId, file: 'progress', version } as const;
    const tail = await askStretch(content, { bytes: TAIL_BYTES }, signal);
    const line = decode(tail.bytes).trimEnd().split('\n').at(-1) ?? '';
    return progressOf(plainLine(line));
  };
  // After a failure, the next change of the file asks again.
  const { answer } = useAnswer(ask, [jobId, taskId, version, bytes]);
  if (answer === undefined || bytes === 0) return null;
  const { done, words } = answer;
  return (
    <div class="task-progress">
      <ProgressBar done={done} label={`Progress of task ${taskId}`} />
      <span class="fine" title={words.slice(0, MAX_CHARACTERS)}>
        <Outside text={words.slice(0, MAX_CHARACTERS)} />
      </span>
    </div>
  );
}
