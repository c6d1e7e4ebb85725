/** What is to be done with each listed name: fetched to a path of its own, left out by a pattern, or refused. */
import ignore from 'ignore';
import { partsOf, resultPath } from './names.ts';

export type Verdict =
  | { readonly kind: 'fetch'; readonly parts: readonly string[] }
  | { readonly kind: 'left-out' | 'refused'; readonly reason: string };

export interface Patterns {
  /** As in .gitignore: a file is fetched if one includes it and none excludes it. */
  readonly include: readonly string[];
  readonly exclude: readonly string[];
}

/** The verdict on each name; of names that would get in each other's way, the first one has it. */
export function judgeNames(names: Iterable<string>, patterns: Patterns): Map<string, Verdict> {
  const options = { allowRelativePaths: true, ignorecase: false };
  const include = ignore(options).add([...patterns.include]);
  const exclude = ignore(options).add([...patterns.exclude]);
  const taken = new TakenPaths();
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
  readonly #files = new Set<string>();
  readonly #directories = new Set<string>();

  /** Takes a path, or says why it cannot be had. */
  take(parts: readonly string[]): string | undefined {
    const path = parts.join('/').normalize('NFC');
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
