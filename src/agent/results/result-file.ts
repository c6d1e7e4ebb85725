/**
 * A result file on its way to the disk: it arrives under a temporary name, is flushed, and takes its name, so that the
 * target is at every moment a whole file of the server or not there.
 */
import { createHash, type Hash, randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import fs from 'node:fs/promises';
import path from 'node:path';
import { asJobtailError, JobtailError } from '../../errors.ts';
import { flushPath, inTheWay, makeDirectories } from '../directories.ts';
import type { Sink } from '../ports.ts';
import { isPartialName, partialName } from './names.ts';

/** A whole file that arrived, under a temporary name. */
export interface Arrived {
  readonly file: string;
  readonly bytes: number;
  /** In hex. */
  readonly sha256: string;
}

/** Readable for the group, as the mirrors are. */
const FILE_MODE = 0o640;

/** A path for a temporary file in `directory`. */
export function partialPath(directory: string): string {
  return path.join(directory, partialName(randomBytes(8).toString('hex')));
}

/** Writes what `download` brings to a temporary file in `directory`; what is not whole is removed again. */
export async function receive(directory: string, download: (sink: Sink) => Promise<unknown>): Promise<Arrived> {
  const file = partialPath(directory);
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  const handle = await fs.open(file, flags, FILE_MODE);
  const hash = createHash('sha256');
  let bytes = 0;
  // A download that is stopped does not wait for its sink: the file is closed only after the last write.
  let writing: Promise<void> = Promise.resolve();
  try {
    await download((chunk) => {
      hash.update(chunk);
      bytes += chunk.length;
      writing = writeAll(handle, chunk, file);
      return writing;
    });
    await handle.close();
    return { file, bytes, sha256: hash.digest('hex') };
  } catch (error) {
    await writing.catch(() => {});
    await handle.close();
    await fs.rm(file, { force: true });
    throw error;
  }
}

async function writeAll(handle: fs.FileHandle, bytes: Buffer, file: string): Promise<void> {
  try {
    for (let written = 0; written < bytes.length; ) {
      written += (await handle.write(bytes, written, bytes.length - written)).bytesWritten;
    }
  } catch (error) {
    if (error instanceof Error) Object.assign(error, { path: file });
    throw asJobtailError(error);
  }
}

/** A file that arrived by a direct transfer, read once for its hash. */
export async function arrivedFile(file: string): Promise<Arrived> {
  const found = await hashOf(file);
  if (found === undefined) throw inTheWay(file, 'file');
  return { file, ...found };
}

/** Length and sha256 of a file, up to `end` if given; undefined if no regular file stands there. Follows no link. */
export async function hashOf(file: string, end?: number): Promise<{ bytes: number; sha256: string } | undefined> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const handle = await fs.open(file, flags).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ELOOP') return undefined;
    throw error;
  });
  if (handle === undefined) return undefined;
  try {
    if (!(await handle.stat()).isFile()) return undefined;
    const hash = createHash('sha256');
    return { bytes: await readInto(hash, handle, end ?? Number.POSITIVE_INFINITY), sha256: hash.digest('hex') };
  } finally {
    await handle.close();
  }
}

const READ_BYTES = 1024 * 1024;

async function readInto(hash: Hash, handle: fs.FileHandle, end: number): Promise<number> {
  const buffer = Buffer.allocUnsafe(READ_BYTES);
  for (let at = 0; ; ) {
    const { bytesRead } = await handle.read(buffer, 0, Math.min(buffer.length, end - at), at);
    if (bytesRead === 0) return at;
    hash.update(buffer.subarray(0, bytesRead));
    at += bytesRead;
  }
}

/** What stands at a target: nothing, a file of so many bytes, or a link that leads to the text. */
export type Present = undefined | { readonly bytes: number } | { readonly link: string };

/** Looks at a target and makes the directories on the way to it; what is no file and no link of the agent is refused. */
export async function lookAt(root: string, target: string): Promise<Present> {
  await makeDirectories(root, path.dirname(target));
  try {
    const stat = await fs.lstat(target);
    if (stat.isSymbolicLink()) return { link: await fs.readlink(target) };
    if (!stat.isFile()) throw inTheWay(target, 'file');
    return { bytes: stat.size };
  } catch (error) {
    if (error instanceof JobtailError || (error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return undefined;
  }
}

/**
 * Gives a file that arrived its name, unless the target has the same bytes already: then it is left alone. True if the
 * target changed; its directory is then to be flushed before anybody is told.
 */
export async function place(arrived: Arrived, target: string, present: Present): Promise<boolean> {
  if (present !== undefined && 'bytes' in present && present.bytes === arrived.bytes) {
    // Read, not believed: somebody may have changed it here.
    if ((await hashOf(target))?.sha256 === arrived.sha256) {
      await fs.rm(arrived.file, { force: true });
      return false;
    }
  }
  await fs.chmod(arrived.file, FILE_MODE);
  await flushPath(arrived.file);
  await fs.rename(arrived.file, target);
  return true;
}

/** Removes a file that arrived and is not wanted. */
export async function discard(arrived: Arrived): Promise<void> {
  await fs.rm(arrived.file, { force: true });
}

/** Puts a link at the target in one step; `text` is relative. */
export async function placeLink(text: string, target: string): Promise<void> {
  const link = partialPath(path.dirname(target));
  await fs.symlink(text, link);
  await fs.rename(link, target);
}

/** Removes the temporary files and links that a kill left below `directory`; follows no link. */
export async function clearPartials(directory: string): Promise<void> {
  const entries = await fs.readdir(directory, { recursive: true, withFileTypes: true }).catch(() => []);
  for (const entry of entries) {
    if (!entry.isDirectory() && isPartialName(entry.name))
      await fs.rm(path.join(entry.parentPath, entry.name), { force: true });
  }
}
