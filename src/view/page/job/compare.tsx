/** A live file beside another generation of it, or beside the same file of another task: which lines differ. */
import type { Generations, LiveFileName } from '../../contract/addresses.ts';
import { Difference } from '../pane/difference.tsx';
import type { OpenedFile } from '../route.ts';
import { numberOf } from './generations.tsx';

/** Options of a list are at most so many. */
const MAX_TASKS = 1_000;

interface CompareProps {
  readonly opened: OpenedFile;
  readonly generations: Generations | undefined;
  /** Tasks with a file of the same name. */
  readonly tasks: readonly string[];
  readonly onCompare: (other: Other | undefined) => void;
}

/** What the shown file is compared with: another generation of it, or the same file of another task. */
export type Other = { readonly version: string } | { readonly taskId: string };

export function CompareWith({ opened: { taskId, file, version }, generations, tasks, onCompare }: CompareProps) {
  const versions = generations === undefined ? [] : [generations.now, ...generations.former.map((one) => one.version)];
  const shown = version ?? generations?.now;
  const others = tasks.filter((task) => task !== taskId).slice(0, MAX_TASKS);
  if (versions.length < 2 && others.length === 0) return null;
  return (
    <select
      class="generations"
      aria-label="Compare with"
      value=""
      onChange={(event) => {
        const { value } = event.currentTarget;
        event.currentTarget.value = '';
        onCompare(versions.includes(value) ? { version: value } : { taskId: value });
      }}
    >
      <option value="">compare with …</option>
      {generations !== undefined &&
        versions
          .filter((one) => one !== shown)
          .map((one) => (
            <option key={one} value={one}>
              generation {numberOf(generations, one)}
            </option>
          ))}
      {others.map((task) => (
        <option key={task} value={task}>
          {file} of task {task}
        </option>
      ))}
    </select>
  );
}

interface ComparedProps {
  readonly jobId: string;
  readonly opened: OpenedFile;
  readonly generations: Generations | undefined;
  readonly other: Other;
  readonly onClose: () => void;
}

/** The older one of two generations is the first, and so is another task. */
export function Compared({ jobId, opened: { taskId, file, version }, generations, other, onClose }: ComparedProps) {
  const side = (task: string, of: string | undefined) => {
    const generation = generations === undefined || !('version' in other) ? '' : `generation ${generationOf(of)}, `;
    const content = { job: jobId, task, file: file as LiveFileName, ...(of === undefined ? {} : { version: of }) };
    return { name: `${generation}${file} of task ${task}`, content };
  };
  const generationOf = (of: string | undefined) => (generations === undefined ? 1 : (numberOf(generations, of) ?? 1));
  const mine = side(taskId, version);
  if (!('version' in other))
    return <Difference before={side(other.taskId, undefined)} after={mine} onClose={onClose} />;
  const its = side(taskId, other.version);
  const isOlder = generationOf(other.version) < generationOf(version);
  return <Difference before={isOlder ? its : mine} after={isOlder ? mine : its} onClose={onClose} />;
}
