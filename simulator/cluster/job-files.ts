/** The files of a job as the service sees them: what is listed, and what a path may reach. */
import { constants } from 'node:fs';
import { type FileHandle, lstat, open, readdir, realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import type { SubmittedJob } from './cluster.ts';

/** Bytes of one read. */
const READ_BYTES = 64 * 1024;

/**
 * Opens a file for reading. Undefined if there is none, or if it lies outside of `root` once symbolic links are
 * followed. Whatever cannot be read for another reason, a directory included, is an error of the system.
 */
export async function openWithin(root: string, path: string): Promise<FileHandle | undefined> {
  try {
    const real = await realpath(path);
    if (!real.startsWith(root + sep)) return undefined;
    // A directory opens, and then fails to read; O_NONBLOCK keeps a FIFO from blocking.
    return await open(real, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'ENAMETOOLONG') return undefined;
    throw error;
  }
}

/** Reads up to `end`, even when the file has grown. The buffer handed out is used again for the next read. */
export async function* readRange(file: FileHandle, start: number, end: number): AsyncGenerator<Buffer> {
  const buffer = Buffer.allocUnsafe(READ_BYTES);
  for (let position = start; position < end; ) {
    const length = Math.min(READ_BYTES, end - position);
    const { bytesRead } = await file.read(buffer, 0, length, position);
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
    position += bytesRead;
  }
}

/** A file of a task as the listing finds it. */
export interface ListedFile {
  readonly specificationId: string;
  readonly subdirectory: string;
  /** From the task's directory, with `/`; bytes that are no UTF-8 stand as U+FFFD. */
  readonly path: string;
  /** Milliseconds since 1970. */
  readonly modifiedMs: number;
}

/**
 * All files below the tasks' directories that were modified since the job was submitted; null before that. `everything`:
 * what is no directory is a file, also pipes, and links wherever they lead, which are not followed.
 */
export async function changedFiles(job: SubmittedJob, root: string, everything = false): Promise<ListedFile[] | null> {
  const since = job.submittedAtNs;
  if (since === undefined) return null;
  const listed: ListedFile[] = [];
  for (const { specificationId, subdirectory, directory } of job.tasks) {
    const onFile = {
      ...{ root, everything },
      isNew: (modifiedNs: bigint) => modifiedNs >= since,
      add: (path: string, modifiedMs: number) => void listed.push({ specificationId, subdirectory, path, modifiedMs }),
    };
    await walk(Buffer.from(directory), '', [], onFile);
  }
  return listed;
}

interface OnFile {
  readonly root: string;
  readonly everything: boolean;
  readonly isNew: (modifiedNs: bigint) => boolean;
  readonly add: (path: string, modifiedMs: number) => void;
}

/** Follows symbolic links that stay within the root; `above` are the real directories on the way, against loops. */
async function walk(directory: Buffer, prefix: string, above: readonly string[], onFile: OnFile): Promise<void> {
  const here = await realpath(directory).catch(() => undefined);
  if (here === undefined || above.includes(here)) return;
  const entries = await readdir(directory, { withFileTypes: true, encoding: 'buffer' }).catch(() => []);
  const found = await Promise.all(
    entries.map(async (entry) => {
      const path = Buffer.concat([directory, Buffer.from(sep), entry.name]);
      const stats = await (onFile.everything ? lstat : stat)(path, { bigint: true }).catch(() => undefined);
      const reachable = onFile.everything || !entry.isSymbolicLink() || (await staysWithin(onFile.root, path));
      return { path, name: entry.name.toString('utf8'), stats: reachable ? stats : undefined };
    }),
  );
  for (const { path, name, stats } of found) {
    if (stats?.isDirectory()) await walk(path, `${prefix}${name}/`, [...above, here], onFile);
    else if ((stats?.isFile() || onFile.everything) && stats && onFile.isNew(stats.mtimeNs))
      onFile.add(`${prefix}${name}`, Number(stats.mtimeMs));
  }
}

async function staysWithin(root: string, path: Buffer): Promise<boolean> {
  const real = await realpath(path).catch(() => '');
  return real.startsWith(root + sep);
}

/** The path in the job's directory that a listed name stands for; undefined if it would leave it. */
export function pathOfListed(job: SubmittedJob, name: string): string | undefined {
  const path = join(job.directory, name);
  return path.startsWith(job.directory + sep) ? path : undefined;
}

/** Bytes that a reader of the file sees, of those that are flushed: `staleBytes` where the file system shows an old size. */
export function visibleSize(flushedBytes: number, staleBytes: number | undefined): number {
  return Math.min(flushedBytes, staleBytes ?? flushedBytes);
}
