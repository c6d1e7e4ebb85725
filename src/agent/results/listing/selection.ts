/** What is to be done with each listed name: fetched to a path of its own, left out by a pattern, or refused. */
import path from 'node:path';
import { partsOf } from '../../../path-parts.ts';
import { resultPath } from '../../../safe-names.ts';
import type { FileCalls } from '../../../system/files.ts';
import { type Patterns, patterned } from '../../patterns.ts';
import { TakenPaths } from './taken-paths.ts';

/** A name of which nothing is fetched. */
export interface Skipped {
  readonly kind: 'left-out' | 'refused';
  readonly reason: string;
}

export type Verdict = { readonly kind: 'fetch'; readonly parts: readonly string[] } | Skipped;

export interface JudgeOptions extends Patterns {
  /** Why a file of this name cannot be had; undefined if it can. */
  readonly reasonAgainst?: ((name: string) => string | undefined) | undefined;
  /** Names that differ by upper and lower case only are one file where the mirrors are. */
  readonly foldsCase: boolean;
}

/** Why a pattern leaves a name out; other reasons do not begin like these. */
const NOT_INCLUDED = { kind: 'left-out', reason: 'results.include does not name it' } as const;
const EXCLUDED = { kind: 'left-out', reason: 'results.exclude names it' } as const;

export function isOfPatterns(reason: string | null): boolean {
  return reason === NOT_INCLUDED.reason || reason === EXCLUDED.reason;
}

export interface Judge {
  /** On each name of one listing, once: of those in each other's way, the first one has it. */
  readonly verdictOn: (name: string) => Verdict;
  /** Whether the place of this name belongs to another one that was to be fetched. */
  readonly isTaken: (name: string) => boolean;
}

export function judgeOf(options: JudgeOptions): Judge {
  const includes = patterned(options.include);
  const excludes = patterned(options.exclude);
  const taken = new TakenPaths(options.foldsCase);
  const verdictOn = (name: string): Verdict => {
    const found = resultPath(name);
    if ('refused' in found) return { kind: 'refused', reason: found.refused };
    const { parts } = found;
    const relative = parts.join('/');
    if (!includes(relative)) return NOT_INCLUDED;
    if (excludes(relative)) return EXCLUDED;
    const reason = options.reasonAgainst?.(name) ?? taken.take(parts);
    return reason === undefined ? { kind: 'fetch', parts } : { kind: 'refused', reason };
  };
  return { verdictOn, isTaken: (name) => taken.has(partsOf(name)) };
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
