/**
 * The paths of live files on the server. They name neither the task nor the kind of live file for sure
 * (docs/dev/servers.md 1.7, 4.2), so bytes have to prove each.
 */
import { asJobtailError } from './errors.ts';
import { type LiveFileKey, parseTaskId } from './job.ts';
import { endsWith, partsOf } from './safe-names.ts';
import { inSlices } from './slices.ts';

/** The number of a task is that of its directory on the server, plus this (src/agent/tasks/). */
export const SHIFT_CAPABILITY = 'task-shift';

/** PATH_MAX of Linux. */
const MAX_PATH_LENGTH = 4_096;

interface LivePath extends LiveFileKey {
  /** As the server sent it with the text; often the same for two tasks. */
  readonly relativePath: string | null;
}

/** Paths below the directory of the task, whose number is that of the task, or differs by a known shift. */
export function likelyPaths({ taskId, relativePath }: LivePath, shift: string | undefined): readonly string[] {
  const parts = partsOf(relativePath ?? '');
  if (parts.length === 0) return [];
  const numbers = shift === undefined ? [] : [String(BigInt(taskId) - BigInt(shift))];
  const below = [...new Set([...numbers, taskId])].map((directory) => `/${[directory, ...parts].join('/')}`);
  return parts.length > 1 ? [...below, `/${parts.join('/')}`] : below;
}

/** The number of a task less that of the directory in which its file is; undefined if the path begins otherwise. */
export function shiftOf({ taskId }: LiveFileKey, path: string): string | undefined {
  const directory = parseTaskId(partsOf(path)[0]);
  return directory === undefined ? undefined : String(BigInt(taskId) - BigInt(directory));
}

/** The listed names that may be a live file: they end in the path that the server sent with the text. */
export async function namesThatMayBe(listed: readonly string[], relativePath: string | null): Promise<string[]> {
  const wanted = partsOf(relativePath ?? '');
  const last = wanted.at(-1);
  if (last === undefined) return [];
  const fitting: string[] = [];
  for await (const name of inSlices(listed)) {
    if (name.length <= MAX_PATH_LENGTH && name.endsWith(last) && endsWith(partsOf(name), wanted)) fitting.push(name);
  }
  return fitting;
}

/** A refused listing counts as empty. */
export async function listedOrNone<Names extends readonly string[]>(listing: Promise<Names>): Promise<Names | []> {
  try {
    return await listing;
  } catch (error) {
    if (asJobtailError(error).policy.isRefusal) return [];
    throw error;
  }
}
