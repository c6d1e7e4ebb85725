/** What is to be done with each listed name: fetched to a path of its own, left out by a pattern, or refused. */
import path from 'node:path';
import ignore from 'ignore';
import { partsOf } from '../path-parts.ts';
import type { FileCalls } from './file-calls.ts';
import { resultPath } from './names.ts';

export type Verdict =
  | { readonly kind: 'fetch'; readonly parts: readonly string[] }
  | { readonly kind: 'left-out' | 'refused'; readonly reason: string };

export interface JudgeOptions extends Patterns {
  /** Names that differ by upper and lower case only are one file where the mirrors are. */
  readonly foldsCase: boolean;
}

export interface Patterns {
  /** As in .gitignore: a file is fetched if one includes it and none excludes it. */
  readonly include: readonly string[];
  readonly exclude: readonly string[];
}

/** The verdict on each name; of names that would get in each other's way, the first one has it. */
export function judgeNames(names: Iterable<string>, patterns: JudgeOptions): Map<string, Verdict> {
  const options = { allowRelativePaths: true, ignorecase: false };
  const include = ignore(options).add([...patterns.include]);
  const exclude = ignore(options).add([...patterns.exclude]);
  const taken = new TakenPaths(patterns.foldsCase);
  const verdicts = new Map<string, Verdict>();
  for (const name of names) {
    if (verdicts.has(name)) continue;
    const found = resultPath(name);
    verdicts.set(name, 'refused' in found ? { kind: 'refused', reason: found.refused } : judge(found.parts));
  }
  return verdicts;

  function judge(parts: readonly string[]): Verdict {
    const relative = parts.join('/');
    if (!include.ignores(relative)) return { kind: 'left-out', reason: 'results.include does not name it' };
    if (exclude.ignores(relative)) return { kind: 'left-out', reason: 'results.exclude names it' };
    const reason = taken.take(parts);
    return reason === undefined ? { kind: 'fetch', parts } : { kind: 'refused', reason };
  }
}

/** The paths that are spoken for. Those that differ by Unicode normalisation only are one file on some file systems. */
class TakenPaths {
  readonly #foldsCase: boolean;
  readonly #files = new Set<string>();
  readonly #directories = new Set<string>();

  constructor(foldsCase: boolean) {
    this.#foldsCase = foldsCase;
  }

  /** Takes a path, or says why it cannot be had. */
  take(parts: readonly string[]): string | undefined {
    const normal = parts.join('/').normalize('NFC');
    const path = this.#foldsCase ? normal.toLowerCase().normalize('NFC') : normal;
    if (this.#files.has(path)) return 'it names the same file as another result';
    if (this.#directories.has(path)) return 'another result needs a directory of this name';
    const above = partsOf(path).slice(0, -1);
    const directories = above.map((_, index) => above.slice(0, index + 1).join('/'));
    if (directories.some((directory) => this.#files.has(directory))) {
      return 'another result is a file where this one needs a directory';
    }
    this.#files.add(path);
    for (const directory of directories) this.#directories.add(directory);
    return undefined;
  }
}

/**
 * Whether names that differ by upper and lower case only are one file beside a directory that has letters in its name:
 * so it is on SMB, macOS, and some directories of ext4.
 */
export async function ignoresCase(calls: FileCalls, directory: string): Promise<boolean> {
  const inodeOf = async (file: string) => (await calls.stat(file))?.ino;
  const upper = path.join(path.dirname(directory), path.basename(directory).toUpperCase());
  const inode = await inodeOf(directory);
  return inode !== undefined && inode === (await inodeOf(upper));
}
