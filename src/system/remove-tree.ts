/** Removes a directory with all that is in it, and nothing else; or renames it before. */
import fs from 'node:fs';
import path from 'node:path';
import { asJobtailError } from '../errors.ts';
import { undefinedIfMissing } from './files.ts';
import { inTheWay } from './regular-files.ts';

export interface RemovedFiles {
  readonly files: number;
  readonly bytes: number;
}

/** Removes `name` in `parent`; follows no link. What is gone counts as removed. @throws JobtailError */
export async function removeTree(parent: string, name: string): Promise<RemovedFiles> {
  const directory = path.join(parent, name);
  const removed = { files: 0, bytes: 0 };
  try {
    const found = fs.lstatSync(directory, { throwIfNoEntry: false });
    if (found === undefined) return removed;
    if (!found.isDirectory()) throw inTheWay(directory, 'directory');
    await count(Buffer.from(directory), removed);
    await fs.promises.rm(directory, { recursive: true, force: true });
    return removed;
  } catch (thrown) {
    throw asJobtailError(thrown);
  }
}

/** Renames a directory, and no link to one, if it is there. @throws JobtailError */
export function renameDirectory(parent: string, from: string, to: string): void {
  const directory = path.join(parent, from);
  try {
    const found = fs.lstatSync(directory, { throwIfNoEntry: false });
    if (found === undefined) return;
    if (!found.isDirectory()) throw inTheWay(directory, 'directory');
    fs.renameSync(directory, path.join(parent, to));
  } catch (thrown) {
    throw asJobtailError(thrown);
  }
}

/** Names that are not UTF-8 stay bytes. */
async function count(directory: Buffer, removed: { files: number; bytes: number }): Promise<void> {
  const names = await fs.promises.readdir(directory, { encoding: 'buffer' }).catch(undefinedIfMissing);
  for (const name of names ?? []) {
    const file = Buffer.concat([directory, Buffer.from('/'), name]);
    const stat = await fs.promises.lstat(file).catch(undefinedIfMissing);
    if (stat?.isDirectory()) await count(file, removed);
    else if (stat !== undefined) removed.files += 1;
    if (stat?.isFile()) removed.bytes += stat.size;
  }
}
