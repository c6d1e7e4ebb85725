/** The directories of a transfer, below one of the agent's own: complete, partial and growing files. */
import fs from 'node:fs/promises';
import path from 'node:path';
import { inTheWay } from '../system/regular-files.ts';

/** Where rsync keeps partial files. No result can have this name, which is that of temporary files. */
export const PARTIAL_DIRECTORY = '.jobtail-0000000000000000.partial';
/** Where rsync writes files that are not complete, below its target. Nothing here is used again. */
export const GROWING_DIRECTORY = '.jobtail-0000000000000001.partial';

/** Creates the directory of a request; removes leftovers of a kill, except what can be resumed. */
export async function prepareDirectory(directory: string): Promise<void> {
  await makeOwnDirectory(directory);
  await clearFiles(directory, PARTIAL_DIRECTORY);
}

/** Creates a directory of the agent; refuses a link or a file in its place. Its parent exists. */
export async function makeOwnDirectory(directory: string): Promise<void> {
  await fs.mkdir(directory, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  if (!(await fs.lstat(directory)).isDirectory()) throw inTheWay(directory, 'directory');
}

/** Removes the files below `directory`, except in directories named `kept`; follows no link. */
async function clearFiles(directory: string, kept: string): Promise<void> {
  for (const entry of await fs.readdir(directory, { withFileTypes: true })) {
    const at = path.join(directory, entry.name);
    if (!entry.isDirectory()) await fs.rm(at, { force: true });
    else if (entry.name !== kept) await clearFiles(at, kept);
  }
}

/** The modification time given to a directory; any change replaces it. */
const UNCHANGED_SECONDS = 1;

/** Before rsync, so that unused ones can be detected. One that cannot be created counts as used. */
export async function preparePartialDirectories(directory: string, names: readonly string[]): Promise<void> {
  for (const parent of new Set(names.map((name) => path.dirname(name)))) {
    const partial = path.join(directory, parent, PARTIAL_DIRECTORY);
    await fs
      .mkdir(partial, { recursive: true, mode: 0o700 })
      .then(() => fs.utimes(partial, UNCHANGED_SECONDS, UNCHANGED_SECONDS))
      .catch(() => {});
  }
}

/** Whether the partial directory beside a file was never used. */
export async function isPartialUnused(file: string): Promise<boolean> {
  const stat = await fs.lstat(path.join(path.dirname(file), PARTIAL_DIRECTORY)).catch(() => undefined);
  return stat?.mtimeMs === UNCHANGED_SECONDS * 1000;
}

export async function bytesBelow(directory: string): Promise<number> {
  let bytes = 0;
  for (const entry of await fs.readdir(directory, { withFileTypes: true })) {
    const at = path.join(directory, entry.name);
    if (entry.isDirectory()) bytes += await bytesBelow(at);
    else if (entry.isFile()) bytes += (await fs.lstat(at).catch(() => undefined))?.size ?? 0;
  }
  return bytes;
}
