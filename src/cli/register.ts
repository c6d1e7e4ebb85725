/** A job that is registered, and its first mirrors. */
import fs from 'node:fs';
import path from 'node:path';
import type { Config } from '../config/config.ts';
import { byTaskAndFile, type JobId } from '../job.ts';
import { liveParts, resultsParts } from '../safe-names.ts';
import type { WatchRequest } from '../store/rows.ts';
import type { Store } from '../store/store.ts';
import { type Until, until } from './waiting.ts';

export interface Registered {
  readonly config: Config;
  readonly store: Store;
  readonly request: WatchRequest;
  /** Whether a process follows it now. */
  readonly isFollowed?: boolean;
  readonly wasSettled?: boolean;
}

/** Has the job followed by whichever process serves the state. */
export function register(store: Store, request: WatchRequest): void {
  store.transaction(() => store.jobs.watch(request, Date.now()));
  store.wake();
}

/** The paths of the mirrors when they are there, or at `endsAt` of the monotonic clock. */
export async function firstPaths(
  registered: Registered,
  { waits, ...wait }: Until & { readonly waits: boolean },
): Promise<string[]> {
  const { store, request } = registered;
  if (waits && request.tasks === null) await until(() => hasTasks(store, request.jobId), wait);
  const paths = pathsOf(registered);
  await until(() => paths.every((file) => fs.existsSync(file)), wait);
  return paths;
}

export type WatchReport = ReturnType<typeof watchReport>;

/** The JSON of `agent watch`. */
export function watchReport({ config, request, isFollowed = false }: Registered, files: readonly string[]) {
  const { jobId } = request;
  const results = request.results ? path.join(config.mirror.directory, ...resultsParts(jobId)) : null;
  return { jobId, isFollowed, files, results };
}

/** Whether tasks were found by a search, or the job fails. */
export function hasTasks({ taskSearches, jobs }: Store, jobId: JobId): boolean {
  const hasSearched = (taskSearches.get(jobId)?.searchedAt ?? null) !== null;
  return (hasSearched && taskSearches.knownTasks(jobId).length > 0) || (jobs.get(jobId)?.error ?? null) !== null;
}

export function pathsOf({ config, store, request }: Registered): string[] {
  const { tasks, files } = request;
  const rows = store.liveFiles
    .ofJob(request.jobId)
    .filter(({ taskId, file }) => (tasks === null || tasks.includes(taskId)) && files.includes(file))
    .sort(byTaskAndFile);
  return rows.map((row) => path.join(config.mirror.directory, ...liveParts(request.jobId, row)));
}
