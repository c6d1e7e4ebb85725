/** Removes a directory with all that is in it, and nothing else. */
import fs, { constants } from 'node:fs';
import path from 'node:path';
import { asJobtailError } from '../errors.ts';

export interface RemovedFiles {
  readonly files: number;
  readonly bytes: number;
}

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** Paths through an open directory stay in it, also if another process replaces the directory by a link. */
const OPEN_FILES = '/proc/self/fd';

/**
 * Removes `name` in `parent`. No link is followed: a link in the directory is removed itself, and a link in its place is an
 * error. What is gone already counts as removed. @throws JobtailError
 */
export async function removeTree(parent: string, name: string): Promise<RemovedFiles> {
  const directory = path.join(parent, name);
  const removed = { files: 0, bytes: 0 };
  try {
    if (fs.lstatSync(directory, { throwIfNoEntry: false }) === undefined) return removed;
    await emptyDirectory(Buffer.from(directory), removed);
    await fs.promises.rmdir(directory);
    return removed;
  } catch (thrown) {
    throw asJobtailError(Object.assign(thrown as Error, { path: directory }));
  }
}

async function emptyDirectory(directory: Buffer, removed: { files: number; bytes: number }): Promise<void> {
  const opened = await fs.promises.open(directory, DIRECTORY);
  try {
    const here = fs.existsSync(OPEN_FILES) ? Buffer.from(`${OPEN_FILES}/${opened.fd}`) : directory;
    // Names that are not UTF-8 stay bytes.
    for (const name of await fs.promises.readdir(here, { encoding: 'buffer' })) {
      const file = Buffer.concat([here, Buffer.from('/'), name]);
      const stat = await fs.promises.lstat(file);
      if (stat.isDirectory()) {
        await emptyDirectory(file, removed);
        await fs.promises.rmdir(file);
        continue;
      }
      await fs.promises.unlink(file);
      removed.files += 1;
      removed.bytes += stat.isFile() ? stat.size : 0;
    }
  } finally {
    await opened.close();
  }
}
