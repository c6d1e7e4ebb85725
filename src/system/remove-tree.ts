/** Removes a directory with all that is in it, and nothing else. */
import fs from 'node:fs';
import path from 'node:path';
import { asJobtailError } from '../errors.ts';
import { inTheWay } from './directories.ts';

export interface RemovedFiles {
  readonly files: number;
  readonly bytes: number;
}

/**
 * Removes `name` in `parent`. No link is followed: a link in the directory is removed itself, and a link in its place is an
 * error. What is gone already counts as removed. @throws JobtailError
 */
export async function removeTree(parent: string, name: string): Promise<RemovedFiles> {
  const directory = path.join(parent, name);
  const removed = { files: 0, bytes: 0 };
  try {
    const found = fs.lstatSync(directory, { throwIfNoEntry: false });
    if (found === undefined) return removed;
    if (!found.isDirectory()) throw inTheWay(directory, 'directory');
    for (const entry of await fs.promises.readdir(directory, { recursive: true, withFileTypes: true })) {
      if (!entry.isDirectory()) removed.files += 1;
      if (entry.isFile()) removed.bytes += (await fs.promises.lstat(path.join(entry.parentPath, entry.name))).size;
    }
    await fs.promises.rm(directory, { recursive: true });
    return removed;
  } catch (thrown) {
    throw asJobtailError(thrown);
  }
}
