/** Lists the mirrors on the disk for a search, in the order of job ids. */
import fs from 'node:fs';
import path from 'node:path';
import {
  compareIds,
  type JobId,
  LIVE_FILE_NAMES,
  type LiveFileKey,
  type LiveFileName,
  parseJobId,
  parseTaskId,
  type TaskId,
} from '../job.ts';
import { formerNumbers, liveParts } from '../safe-names.ts';
import type { SearchedFile } from './search.ts';

export interface MirrorFile extends SearchedFile {
  readonly jobId: JobId;
  readonly taskId: TaskId;
  readonly file: LiveFileName;
  /** 0: the mirror itself; 1: the generation before it (`stdout.log.1`). */
  readonly generation: number;
}

/** An empty list means all. */
export interface MirrorChoice {
  readonly jobs: readonly JobId[];
  readonly tasks?: readonly TaskId[];
  readonly files?: readonly LiveFileName[];
  /** Milliseconds since 1970. */
  readonly since?: number | undefined;
  readonly allGenerations?: boolean | undefined;
}

export function mirrorsIn(directory: string, choice: MirrorChoice): MirrorFile[] {
  const { jobs, tasks = [] } = choice;
  if (!isDirectory(directory)) return [];
  return idsIn(directory, parseJobId, jobs).flatMap((jobId) => {
    const live = path.join(directory, jobId, 'live');
    return isDirectory(path.dirname(live)) && isDirectory(live)
      ? idsIn(live, parseTaskId, tasks).flatMap((taskId) => mirrorsOf(directory, jobId, taskId, choice))
      : [];
  });
}

export const hasMirrors = (directory: string, jobId: JobId) => isDirectory(path.join(directory, jobId, 'live'));

interface KnownMirror extends LiveFileKey {
  readonly path: string;
  readonly bytes: number;
}

/** A line about a mirror that had so many bytes, if another program has removed or cut it. */
export function lossOf(jobId: JobId, { taskId, file, path: mirror, bytes }: KnownMirror): string | undefined {
  let size: number | undefined;
  try {
    size = fs.lstatSync(mirror, { throwIfNoEntry: false })?.size;
  } catch {
    // Of a mirror that this user may not find, nothing is known.
    return undefined;
  }
  if (bytes === 0 || (size !== undefined && size >= bytes)) return undefined;
  const loss = size === undefined ? 'its mirror is gone' : `its mirror has only ${size} of ${bytes} bytes`;
  return `task ${taskId} ${file}: ${loss} (agent sync ${jobId})`;
}

/** None of a directory that was removed since it was seen. */
function namesIn(directory: string): string[] {
  try {
    return fs.readdirSync(directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/** Symbolic links are ignored. */
const isDirectory = (at: string) => fs.lstatSync(at, { throwIfNoEntry: false })?.isDirectory() === true;

function idsIn<Id extends string>(directory: string, parse: (name: string) => Id | undefined, wanted: readonly Id[]) {
  const ids = namesIn(directory).filter((name): name is Id => parse(name) === name);
  return ids.filter((id) => wanted.length === 0 || wanted.includes(id)).sort(compareIds);
}

function mirrorsOf(directory: string, jobId: JobId, taskId: TaskId, choice: MirrorChoice): MirrorFile[] {
  const { files = [], since = Number.NEGATIVE_INFINITY, allGenerations = false } = choice;
  const of = (file: LiveFileName) => path.join(directory, ...liveParts(jobId, { taskId, file }));
  const inTask = path.dirname(of('stdout'));
  const names = allGenerations && isDirectory(inTask) ? namesIn(inTask) : [];
  return LIVE_FILE_NAMES.filter((file) => files.length === 0 || files.includes(file)).flatMap((file) => {
    const base = path.basename(of(file));
    return [0, ...formerNumbers(names, base)].flatMap((generation) => {
      const at = generation === 0 ? of(file) : `${of(file)}.${generation}`;
      const stat = isDirectory(inTask) ? fs.lstatSync(at, { throwIfNoEntry: false }) : undefined;
      if (stat?.isFile() !== true || stat.mtimeMs < since) return [];
      return [{ jobId, taskId, file, generation, path: at, size: stat.size }];
    });
  });
}
