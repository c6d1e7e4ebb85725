/** Temporary files and links of results: they are made beside their target, and what a kill left of them is removed. */
import { randomBytes } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import { isPartialName, partialName } from '../../../safe-names.ts';
import { type FileDigest, type WritePiece, writeNewFile } from '../../../system/files.ts';

/** A whole file that arrived, under a temporary name. */
export interface Arrived {
  readonly path: string;
  readonly digest: FileDigest;
}

/** Readable for the group, as the mirrors are. */
export const FILE_MODE = 0o640;

/** Of a directory that is read. */
const ENTRIES_AT_ONCE = 512;

/** A path for a temporary file in `directory`. */
function partialPath(directory: string): string {
  return path.join(directory, partialName(randomBytes(8).toString('hex')));
}

/** Writes what `download` brings to a temporary file in `directory`; what is not whole is removed again. */
export async function receive(directory: string, download: (write: WritePiece) => Promise<unknown>): Promise<Arrived> {
  const file = partialPath(directory);
  return { path: file, digest: await writeNewFile(file, FILE_MODE, download) };
}

/** Removes a file that arrived and is not wanted. */
export async function discard(file: string): Promise<void> {
  await fs.rm(file, { force: true });
}

/** Puts a link at the target in one step; `text` is relative. */
export async function placeLink(text: string, target: string): Promise<void> {
  const link = partialPath(path.dirname(target));
  await fs.symlink(text, link);
  await fs.rename(link, target);
}

/** Removes the temporary files and links that a kill left below `directory`; follows no link. */
export async function clearPartials(directory: string): Promise<void> {
  const left = [directory];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    // Entry by entry: there may be more than fit into the memory.
    const entries = await fs.opendir(next, { bufferSize: ENTRIES_AT_ONCE }).catch(() => []);
    for await (const entry of entries) {
      const file = path.join(next, entry.name);
      if (entry.isDirectory()) left.push(file);
      else if (isPartialName(entry.name)) await fs.rm(file, { force: true });
    }
  }
}
