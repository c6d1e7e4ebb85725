/** What becomes of tasks that were found: they are kept, and never lost again. */
import { isDeepStrictEqual } from 'node:util';
import { compareIds, type JobId, type TaskId } from '../../job.ts';
import { countOf } from '../../numbers.ts';
import type { FoundBy, TaskSearchRow } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import type { Clock } from '../../system/clock.ts';
import type { Log } from '../ports.ts';

export interface FoundTasksOptions {
  readonly store: Store;
  readonly log: Log;
  /** Told how many were found, and how. */
  readonly onFound?: ((tasks: number, by: FoundBy) => void) | undefined;
}

/** More tasks of one job are not followed. */
const MOST_TASKS = 10_000;
const MOST_NAMED = 5;
/** Tasks that are added in one step: the process does nothing else meanwhile. */
const AT_A_TIME = 500;

/**
 * Adds the live files of the tasks that are new, and returns how many these are. What a kill leaves out is found again.
 */
export async function keepFound(
  search: TaskSearchRow,
  tasks: readonly TaskId[],
  { store, log, onFound }: FoundTasksOptions,
): Promise<number> {
  const { jobId, foundBy } = search;
  const known = new Set(store.taskSearches.knownTasks(jobId));
  const room = Math.max(0, MOST_TASKS - known.size);
  const fresh = [...new Set(tasks)].filter((task) => !known.has(task)).sort(compareIds);
  const taken = fresh.slice(0, room);
  for (let start = 0; start < taken.length; start += AT_A_TIME) {
    if (start > 0) await new Promise((resolve) => setImmediate(resolve));
    store.transaction(() => store.taskSearches.addTasks(search, taken.slice(start, start + AT_A_TIME)));
  }
  if (taken.length === 0) return 0;
  const named = taken.slice(0, MOST_NAMED).join(', ');
  const more = taken.length > MOST_NAMED ? ', ...' : '';
  const text = `found ${countOf(taken.length, 'task')} of job ${jobId}: ${named}${more}`;
  log.info({ jobId, found: taken.length, by: foundBy }, text);
  if (taken.length < fresh.length)
    log.warn({ jobId, left: fresh.length - taken.length }, `job ${jobId} has too many tasks: ${room} are followed`);
  onFound?.(taken.length, foundBy ?? 'probes');
  return taken.length;
}

/**
 * Keeps the tasks that the service that tells of jobs names, so that no other search is needed, and returns how many are
 * new. Nothing where it names none, or the order of the job names its tasks.
 */
export async function keepTold(
  jobId: JobId,
  tasks: readonly TaskId[],
  options: FoundTasksOptions & { readonly clock: Clock },
): Promise<number> {
  const { store, clock } = options;
  const search = store.taskSearches.get(jobId);
  if (search === undefined || tasks.length === 0) return 0;
  const told = { ...search, foundBy: 'job-service', fruitless: 0, nextLookAt: null, hint: null } as const;
  const found = await keepFound(told, tasks, options);
  if (found > 0 || !isDeepStrictEqual(told, search))
    store.transaction(() => store.taskSearches.save({ ...told, lookedAt: clock.now() }));
  return found;
}
