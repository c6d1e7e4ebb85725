/** The tasks of a job as rows of a table, and the file that is opened first. */
import type { ShownTask } from '../../../job-information.ts';
import type { LiveFileName } from '../../contract/addresses.ts';
import type { FileState, JobDetail } from '../../contract/events.ts';
import { type Group, groupOf, hasWords, idKey, minuteOf, RANKS } from '../jobs/list.ts';
import { type Columns, column, type Sort, sorted } from '../parts/sort.ts';
import type { OpenedFile } from '../route.ts';

export interface TaskRow {
  readonly taskId: string;
  /** What the middleware reports of it, if it does. */
  readonly reported: ShownTask | undefined;
  readonly group: Group;
  readonly files: readonly FileState[];
  readonly bytes: number;
  readonly grownAt: number | null;
}

/** Tasks with files first, then those that are only reported. */
export function taskRows(job: JobDetail | undefined, files: readonly FileState[]): TaskRow[] {
  const byTask = new Map<string, FileState[]>();
  for (const file of files) byTask.set(file.taskId, [...(byTask.get(file.taskId) ?? []), file]);
  const reported = new Map<string, ShownTask>(job?.tasks.reported.map((task) => [task.taskId, task]));
  return [...new Set([...byTask.keys(), ...reported.keys()])].map((taskId) =>
    rowOf(taskId, reported.get(taskId), byTask.get(taskId) ?? []),
  );
}

function rowOf(taskId: string, reported: ShownTask | undefined, files: readonly FileState[]): TaskRow {
  const jobState = reported?.taskState ?? null;
  const firstError = files.find(({ error }) => error !== null)?.error ?? null;
  return {
    taskId,
    reported,
    files,
    group:
      reported?.errorMessage == null
        ? groupOf({ jobState, state: 'watched', stalledAt: null, firstError })
        : ('failed' as const),
    bytes: files.reduce((sum, file) => sum + file.bytes, 0),
    grownAt: files.reduce<number | null>(
      (last, { grownAt }) => (grownAt === null ? last : Math.max(last ?? 0, grownAt)),
      null,
    ),
  };
}

export const COLUMNS: Columns<'task' | 'state' | 'grown' | 'size', TaskRow> = {
  task: column('Task', ({ taskId }) => idKey(taskId), false),
  state: column('State', ({ group }) => RANKS.get(group) ?? null, false),
  grown: column('Last growth', ({ grownAt }) => minuteOf(grownAt)),
  size: column('Size', ({ bytes }) => bytes),
};

export const ordered = (rows: readonly TaskRow[], { by, isDown }: Sort<keyof typeof COLUMNS>): TaskRow[] =>
  sorted(rows, COLUMNS[by], { isDown, now: 0, tie: (a, b) => (idKey(a.taskId) < idKey(b.taskId) ? -1 : 1) });

export const matches = ({ taskId, reported, files }: TaskRow, filter: string): boolean =>
  hasWords(
    [
      taskId,
      reported?.name,
      reported?.taskState,
      reported?.errorMessage,
      ...files.map(({ error }) => error?.message),
    ].join(' '),
    filter,
  );

const USUAL: readonly LiveFileName[] = ['stdout', 'log', 'stderr', 'progress'];
/** Why it failed stands in the standard error, if anything does. */
const FAILED: readonly LiveFileName[] = ['stderr', 'stdout', 'log', 'progress'];

/** The file that is opened where none is named: of what failed, and not empty. */
export function firstOf(rows: readonly TaskRow[]): OpenedFile | undefined {
  const candidates = rows.flatMap(({ files, group }) =>
    files.map(({ taskId, file, bytes }) => ({
      opened: { taskId, file },
      isEmpty: bytes === 0,
      rank: group === 'failed' ? FAILED.indexOf(file) : FAILED.length + USUAL.indexOf(file),
    })),
  );
  const [first] = candidates.sort((a, b) => Number(a.isEmpty) - Number(b.isEmpty) || a.rank - b.rank);
  return first?.opened;
}
