/**
 * One result file on its way to the disk: downloaded to a temporary file beside its target, flushed, renamed, so that
 * the target is at every moment a whole file of the server or not there.
 */
import { createHash, randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import fs from 'node:fs/promises';
import path from 'node:path';
import { asJobtailError, JobtailError } from '../errors.ts';
import { flushPath } from './generations.ts';
import { inTheWay, makeDirectories } from './mirror.ts';
import { isPartialName, partialName } from './names.ts';
import type { Sink } from './ports.ts';

export interface Fetched {
  readonly bytes: number;
  readonly sha256: string;
  /** False if the target already had these bytes, and was left alone. */
  readonly changed: boolean;
}

export interface FetchOptions {
  /** The directory below which everything stays. */
  readonly root: string;
  /** Where the file goes: below `root`. */
  readonly target: string;
  /** sha256 of what was fetched before, in hex. */
  readonly knownSha256: string | null;
  /** Fetches the bytes; rejects if they are not good. */
  readonly download: (sink: Sink) => Promise<number>;
  readonly maxBytes: number | null;
}

/** The file is larger than the configuration allows. */
export class TooLarge extends Error {}

export async function fetchResult({ root, target, knownSha256, download, maxBytes }: FetchOptions): Promise<Fetched> {
  const directory = path.dirname(target);
  await makeDirectories(root, directory);
  const present = await regularFile(target);
  const partial = path.join(directory, partialName(randomBytes(8).toString('hex')));
  const handle = await fs.open(
    partial,
    constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
    0o640,
  );
  let renamed = false;
  try {
    const hash = createHash('sha256');
    let bytes = 0;
    await download(async (chunk) => {
      if (maxBytes !== null && bytes + chunk.length > maxBytes) throw new TooLarge();
      hash.update(chunk);
      await writeAll(handle, chunk, partial);
      bytes += chunk.length;
    });
    const sha256 = hash.digest('hex');
    if (present === bytes && sha256 === knownSha256) return { bytes, sha256, changed: false };
    await handle.sync();
    await fs.rename(partial, target);
    renamed = true;
    await flushPath(directory);
    return { bytes, sha256, changed: true };
  } finally {
    await handle.close();
    if (!renamed) await fs.rm(partial, { force: true });
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

/** The length of what stands at `target`; undefined if nothing does; throws if it is no regular file. */
async function regularFile(target: string): Promise<number | undefined> {
  try {
    const stat = await fs.lstat(target);
    if (!stat.isFile()) throw inTheWay(target, 'file');
    return stat.size;
  } catch (error) {
    if (error instanceof JobtailError || (error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return undefined;
  }
}

/** Removes the temporary files that a kill left below `directory`. */
export async function clearPartials(directory: string): Promise<void> {
  const entries = await fs.readdir(directory, { recursive: true, withFileTypes: true }).catch(() => []);
  for (const entry of entries) {
    if (entry.isFile() && isPartialName(entry.name))
      await fs.rm(path.join(entry.parentPath, entry.name), { force: true });
  }
}
