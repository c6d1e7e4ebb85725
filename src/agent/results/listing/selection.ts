/** What is to be done with each listed name: fetched to a path of its own, left out by a pattern, or refused. */
import path from 'node:path';
import type { FileCalls } from '../../../system/files.ts';
import { type Patterned, type Patterns, patterned } from '../../patterns.ts';
import { resultPath } from './safe-names.ts';
import { TakenPaths } from './taken-paths.ts';

/** A name of which nothing is fetched. */
export interface Skipped {
  readonly kind: 'left-out' | 'refused';
  readonly reason: string;
}

export type Verdict = { readonly kind: 'fetch'; readonly parts: readonly string[] } | Skipped;

export interface JudgeOptions extends Patterns {
  /** Names that differ by upper and lower case only are one file where the mirrors are. */
  readonly foldsCase: boolean;
}

/** Why a pattern leaves a name out; other reasons do not begin like these. */
const NOT_INCLUDED = { kind: 'left-out', reason: 'results.include does not name it' } as const;
const EXCLUDED = { kind: 'left-out', reason: 'results.exclude names it' } as const;

export function isOfPatterns(reason: string | null): boolean {
  return reason === NOT_INCLUDED.reason || reason === EXCLUDED.reason;
}

/** The verdict on the names of one listing, each asked for once: of those in each other's way, the first one has it. */
export class Judge {
  readonly #include: Patterned;
  readonly #exclude: Patterned;
  readonly #taken: TakenPaths;

  constructor({ include, exclude, foldsCase }: JudgeOptions) {
    this.#include = patterned(include);
    this.#exclude = patterned(exclude);
    this.#taken = new TakenPaths(foldsCase);
  }

  verdictOn(name: string): Verdict {
    const found = resultPath(name);
    if ('refused' in found) return { kind: 'refused', reason: found.refused };
    const { parts } = found;
    const relative = parts.join('/');
    if (!this.#include(relative)) return NOT_INCLUDED;
    if (this.#exclude(relative)) return EXCLUDED;
    const reason = this.#taken.take(parts);
    return reason === undefined ? { kind: 'fetch', parts } : { kind: 'refused', reason };
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
