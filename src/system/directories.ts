/**
 * The directories of the mirrors: made as they are needed and on the disk before anything in them is promised. A link
 * in their place is never followed.
 */
import { constants, type Stats } from 'node:fs';
import fs from 'node:fs/promises';
import path from 'node:path';
import { JobtailError } from '../errors.ts';
import type { FileCalls } from './files.ts';

/** Readable for the group, which may tail what is in them. */
const DIRECTORY_MODE = 0o750;

/**
 * Makes the directories from `root` down to `directory`, and refuses a link or a file in between. `root` itself may be
 * a link: it is the person's choice.
 */
export async function makeDirectories(
  { lstat }: Pick<FileCalls, 'lstat'>,
  root: string,
  directory: string,
): Promise<void> {
  if ((await lstat(root)) === undefined) await fs.mkdir(root, { recursive: true, mode: DIRECTORY_MODE });
  for (const at of directoriesBelow(root, directory)) {
    const found = (await lstat(at)) ?? (await makeDirectory(at));
    if (!found.isDirectory()) throw inTheWay(at, 'directory');
  }
}

/** The directories from below `root` down to `directory`. */
export function directoriesBelow(root: string, directory: string): string[] {
  const parts = path.relative(root, directory).split(path.sep);
  return parts.flatMap((part, index) => (part === '' ? [] : [path.join(root, ...parts.slice(0, index + 1))]));
}

async function makeDirectory(directory: string): Promise<Stats> {
  try {
    await fs.mkdir(directory, { mode: DIRECTORY_MODE });
    await flushPath(path.dirname(directory));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  return fs.lstat(directory);
}

/** Waits until a file's bytes, or a directory's names, are on the disk. */
export async function flushPath(file: string): Promise<void> {
  const handle = await fs.open(file, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

export function inTheWay(at: string, wanted: 'directory' | 'file' | 'socket'): JobtailError {
  return new JobtailError('local-io', `${at} is not a ${wanted}, and is not followed or replaced`, {
    hint: `move ${at} out of the way`,
  });
}
