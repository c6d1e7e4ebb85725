/**
 * What lies below a directory, reached step by step: each name is looked up in the directory that was opened before it,
 * and no link is followed. A directory that another process swaps meanwhile leads nowhere else. (openat(2), by /proc.)
 *
 * All calls are made at once, here as in all of the view: it has a thread of its own, while those that Node.js has for
 * calls on files are shared with the agent, whose flushes must not wait for a slow disk of a view.
 *
 * A system without /proc (macOS) resolves the path again at each step. No link is followed there either, but a
 * directory that another process replaces by a link between two steps is.
 */
import fs, { constants } from 'node:fs';
import { READ } from '../../system/regular-files.ts';

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY;

const DESCRIPTORS = '/proc/self/fd';

/** It is not there, or is something else than it should be. */
const NOT_THERE = /^(?:ENOENT|ENOTDIR|ELOOP|ENXIO|EISDIR|ENAMETOOLONG)$/;

/** Undefined if it is no regular file. `root` itself may be a link: it is the person's choice. */
export function openBelow(root: string, parts: readonly string[], descriptors = DESCRIPTORS): number | undefined {
  const parents = parts.slice(0, -1);
  return inDirectory({ root, parts: parents, descriptors }, (directory) => {
    const opened = fs.openSync(`${directory}/${named(parts.at(-1))}`, READ);
    if (fs.fstatSync(opened).isFile()) return opened;
    fs.closeSync(opened);
    return undefined;
  });
}

export function namesBelow(root: string, parts: readonly string[], descriptors = DESCRIPTORS): string[] {
  return inDirectory({ root, parts, descriptors }, (directory) => fs.readdirSync(directory)) ?? [];
}

interface Below {
  readonly root: string;
  readonly parts: readonly string[];
  /** Where the system shows open directories by their descriptor. */
  readonly descriptors: string;
}

/** Calls `use` with a path that is valid during the call; undefined if there is no such directory. */
function inDirectory<T>({ root, parts, descriptors }: Below, use: (directory: string) => T): T | undefined {
  const hasDescriptors = fs.existsSync(descriptors);
  const pathOf = (directory: number, path: string) => (hasDescriptors ? `${descriptors}/${directory}` : path);
  let at: number | undefined;
  try {
    at = fs.openSync(root, DIRECTORY);
    let path = pathOf(at, root);
    for (const part of parts) {
      const below = `${path}/${named(part)}`;
      const next = fs.openSync(below, DIRECTORY | constants.O_NOFOLLOW);
      fs.closeSync(at);
      at = next;
      path = pathOf(at, below);
    }
    return use(path);
  } catch (error) {
    if (NOT_THERE.test(String((error as NodeJS.ErrnoException).code))) return undefined;
    throw error;
  } finally {
    if (at !== undefined) fs.closeSync(at);
  }
}

/** The name of one entry, and nothing that leads elsewhere. */
function named(part: string | undefined): string {
  if (part === undefined || /^\.{0,2}$|[/\0]/.test(part)) throw new Error('a name that is none');
  return part;
}
