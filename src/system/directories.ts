/** Directories of the mirrors: flushed before anything in them is promised. A link in their place is refused. */
import fs, { constants, type Stats } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { type FileCalls, fileCalls } from './files.ts';
import { runProgram } from './program.ts';
import { inTheWay } from './regular-files.ts';

/** Readable for the group, which may tail what is in them. */
const DIRECTORY_MODE = 0o750;

/** Makes the directories from `root` (which may be a link) to `directory`; refuses a link or file in between. */
export async function makeDirectories(
  { lstat }: Pick<FileCalls, 'lstat'>,
  root: string,
  directory: string,
): Promise<void> {
  if ((await lstat(root)) === undefined) await fs.promises.mkdir(root, { recursive: true, mode: DIRECTORY_MODE });
  for (const at of directoriesBelow(root, directory)) {
    const found = (await lstat(at)) ?? (await makeDirectory(at));
    if (!found.isDirectory()) throw inTheWay(at, 'directory');
  }
}

function directoriesBelow(root: string, directory: string): string[] {
  const parts = path.relative(root, directory).split(path.sep);
  return parts.flatMap((part, index) => (part === '' ? [] : [path.join(root, ...parts.slice(0, index + 1))]));
}

async function makeDirectory(directory: string): Promise<Stats> {
  try {
    await fs.promises.mkdir(directory, { mode: DIRECTORY_MODE });
    await flushPath(path.dirname(directory));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  return fs.promises.lstat(directory);
}

/** Waits until a file's bytes, or a directory's names, are on the disk. */
export async function flushPath(file: string, onNetwork = true): Promise<void> {
  const opened = await fileCalls(onNetwork).open(file, constants.O_RDONLY);
  try {
    await opened.sync();
  } finally {
    await opened.close();
  }
}

/** So many are flushed with their whole file system: one commit of its journal costs less than one for each. */
const MANY = 32;
const AT_A_TIME = 8;
/** Of gigabytes that a slow disk has not written yet. */
const SYNC_MS = 10 * 60_000;

/**
 * Waits until the bytes of files, or the names in directories, are on the disk; they are all of one file system. On a
 * network one each is flushed by itself: syncfs(2) does not reach the server of every such file system.
 */
export async function flushAll(paths: Iterable<string>, onNetwork: boolean, signal: AbortSignal): Promise<void> {
  const left = [...paths];
  const [first] = left;
  const together = left.length > MANY && !onNetwork && doesSyncfsReport();
  if (together && first !== undefined && (await flushFileSystemOf(first, signal))) return;
  const work = async () => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) await flushPath(next, onNetwork);
  };
  await Promise.all(Array.from({ length: Math.min(AT_A_TIME, left.length) }, work));
}

/** Whether syncfs(2) fails if bytes could not be written: before Linux 5.8 it did not. */
function doesSyncfsReport(): boolean {
  const [major = 0, minor = 0] = os.release().split('.').map(Number.parseFloat);
  return os.platform() === 'linux' && (major > 5 || (major === 5 && minor >= 8));
}

/** Calls syncfs by `sync -f`, as Node.js cannot. False if that fails or is stopped: then the caller flushes each file. */
async function flushFileSystemOf(file: string, signal: AbortSignal): Promise<boolean> {
  const limit = { totalMs: SYNC_MS };
  return runProgram({ command: 'sync', args: ['-f', '--', file], limit, signal }).then(
    ({ code, stderr }) => code === 0 && stderr === '',
    () => false,
  );
}

/** A fresh directory for this process alone, also where TMPDIR is not there. */
export function temporaryDirectory(prefix: string): string {
  try {
    return fs.mkdtempSync(path.join(os.tmpdir(), prefix));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return fs.mkdtempSync(path.join('/tmp', prefix));
  }
}
