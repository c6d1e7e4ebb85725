/** Waits until files are on the disk. */
import { execFile } from 'node:child_process';
import { flushPath } from '../directories.ts';

/** So many are flushed with their whole file system: one commit of its journal costs less than one for each. */
const MANY = 32;
const AT_A_TIME = 8;

/** Waits until the bytes of files, or the names in directories, are on the disk; they are all of one file system. */
export async function flushAll(paths: Iterable<string>): Promise<void> {
  const left = [...paths];
  const [first] = left;
  if (left.length > MANY && first !== undefined && (await flushFileSystemOf(first))) return;
  const work = async () => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) await flushPath(next);
  };
  await Promise.all(Array.from({ length: Math.min(AT_A_TIME, left.length) }, work));
}

/** Node.js has no syncfs, `sync -f` of coreutils is it. False if it is not there, or failed: then each is flushed by itself. */
function flushFileSystemOf(file: string): Promise<boolean> {
  return new Promise((resolve) => {
    execFile('sync', ['-f', '--', file], (error) => resolve(error === null));
  });
}
