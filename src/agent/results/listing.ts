/** Decides about each listed name: downloaded to a path of its own, excluded by a pattern, or refused. */
import path from 'node:path';
import { printable } from '../../printable.ts';
import { partsOf, resultPath } from '../../safe-names.ts';
import type { ResultRow } from '../../store/rows.ts';
import type { FileCalls } from '../../system/files.ts';
import { type Patterns, patterned } from '../patterns.ts';
import { isTried, type Ledger } from './ledger.ts';

export interface Skipped {
  readonly kind: 'left-out' | 'refused';
  readonly reason: string;
}

type Verdict = { readonly kind: 'fetch'; readonly parts: readonly string[] } | Skipped;

const NOT_INCLUDED = { kind: 'left-out', reason: 'results.include does not name it' } as const;
const EXCLUDED = { kind: 'left-out', reason: 'results.exclude names it' } as const;

export interface Judge {
  /** Decides about each name once: of names that need the same path, the first one takes it. */
  readonly verdictOn: (name: string) => Verdict;
  readonly isTaken: (name: string) => boolean;
  /** Whether another name needs a directory there. */
  readonly isDirectory: (name: string) => boolean;
}

/** `foldsCase`: whether names that differ only by case are one file below the mirror directory. */
export function judgeOf(
  { include, exclude }: Patterns,
  foldsCase: boolean,
  reasonAgainst: (name: string) => string | undefined = () => undefined,
): Judge {
  const [includes, excludes] = [patterned(belowTasks(include)), patterned(belowTasks(exclude))];
  const taken = new TakenPaths(foldsCase);
  const verdictOn = (name: string): Verdict => {
    const found = resultPath(name);
    if ('refused' in found) return { kind: 'refused', reason: found.refused };
    const { parts } = found;
    const relative = parts.join('/');
    if (!includes(relative)) return NOT_INCLUDED;
    if (excludes(relative)) return EXCLUDED;
    const reason = reasonAgainst(name) ?? taken.take(parts);
    return reason === undefined ? { kind: 'fetch', parts } : { kind: 'refused', reason };
  };
  const isDirectory = (name: string) => taken.hasDirectory(partsOf(name));
  return { verdictOn, isTaken: (name) => taken.has(partsOf(name)), isDirectory };
}

/** A pattern for a path is one of the whole name, and one of the path below the directory of a task. */
function belowTasks(patterns: readonly string[]): string[] {
  return patterns.flatMap((pattern) => {
    const [, not = '', rest = ''] = /^(!?)(.*)$/su.exec(pattern) ?? [];
    const isOfPath = rest.replace(/\/$/u, '').includes('/') && !rest.startsWith('**/');
    return isOfPath ? [pattern, `${not}/*/${rest.replace(/^\//u, '')}`] : [pattern];
  });
}

/** Whether this file system ignores case; the name of the directory must contain letters. */
export async function ignoresCase(calls: FileCalls, directory: string): Promise<boolean> {
  const inodeOf = async (file: string) => (await calls.stat(file))?.ino;
  const upper = path.join(path.dirname(directory), path.basename(directory).toUpperCase());
  const inode = await inodeOf(directory);
  return inode !== undefined && inode === (await inodeOf(upper));
}

/** Maximum results of a job, and maximum results and directories together: more would fill the memory. */
const MAX_FILES = 200_000;
const MAX_NODES = 500_000;

/** The taken paths. Names that differ only by Unicode normalisation are one file on some file systems. */
class TakenPaths {
  readonly #foldsCase: boolean;
  readonly #files = new Set<string>();
  readonly #directories = new Set<string>();

  constructor(foldsCase: boolean) {
    this.#foldsCase = foldsCase;
  }

  take(parts: readonly string[]): string | undefined {
    const file = this.#normal(parts);
    if (this.#files.has(file)) return 'it names the same file as another result';
    if (this.#directories.has(file)) return 'another result needs a directory of this name';
    const fresh: string[] = [];
    for (let at = directoryOf(file); at !== '' && !this.#directories.has(at); at = directoryOf(at)) {
      if (this.#files.has(at)) return 'another result is a file where this one needs a directory';
      fresh.push(at);
    }
    if (this.#files.size >= MAX_FILES) return `the job has more than ${MAX_FILES} results`;
    if (this.#files.size + this.#directories.size + fresh.length >= MAX_NODES)
      return `the results of the job have more than ${MAX_NODES} files and directories`;
    for (const directory of fresh) this.#directories.add(directory);
    this.#files.add(file);
    return undefined;
  }

  has(parts: readonly string[]): boolean {
    return this.#files.has(this.#normal(parts));
  }

  hasDirectory(parts: readonly string[]): boolean {
    return this.#directories.has(this.#normal(parts));
  }

  #normal(parts: readonly string[]): string {
    const normal = parts.join('/').normalize('NFC');
    return this.#foldsCase ? normal.toLowerCase().normalize('NFC') : normal;
  }
}

const directoryOf = (file: string) => file.slice(0, Math.max(0, file.lastIndexOf('/')));

/** Maximum rows of skipped names, for each reason. */
const MAX_EXAMPLES = 100;
const MAX_NAME_LENGTH = 3_000;
const SHOWN_LENGTH = 200;

export interface Refusals {
  readonly count: number;
  readonly fresh: readonly { readonly name: string; readonly reason: string }[];
}

/** Listed names that are not downloaded: some have rows, the others are counted, as the cluster decides how many. */
export class SkippedNames {
  readonly #ledger: Ledger;
  readonly #examples = new Map<string, ResultRow>();
  readonly #former = new Map<string, ResultRow>();
  readonly #byReason = new Map<string, number>();
  readonly #withoutRow = { refused: 0, 'left-out': 0 };

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** Takes a row of the ledger; returns false if it is not that of a skipped name. There may be very many that are not listed. */
  takeFormer(row: ResultRow, listed: ReadonlySet<string>): boolean {
    if (isTried(row)) return false;
    if (row.state !== 'refused' && row.reason !== NOT_INCLUDED.reason && row.reason !== EXCLUDED.reason) return false;
    if (listed.has(row.name) || row.name.endsWith(SHORTENED)) this.#former.set(row.name, row);
    else this.#ledger.forget(row.name);
    return true;
  }

  /** Names of rows that are not among the examples now. */
  get formerNames(): Iterable<string> {
    return [...this.#former.keys()].filter((name) => !this.#examples.has(name));
  }

  /** The row of a name that is fetched from now on is another one. */
  admit(name: string): void {
    this.#former.delete(name);
  }

  /** Skips a name; the first ones of each reason get a row, as examples. */
  add(row: ResultRow, { kind, reason }: Skipped): void {
    const examples = this.#byReason.get(reason) ?? 0;
    const name = shortened(row.name);
    if (examples >= MAX_EXAMPLES || this.#examples.has(name)) {
      this.#withoutRow[kind] += 1;
      return;
    }
    this.#byReason.set(reason, examples + 1);
    this.#examples.set(name, { ...row, name, state: kind, reason });
  }

  end(): Refusals {
    const fresh: { name: string; reason: string }[] = [];
    let count = this.#withoutRow.refused;
    for (const [name, row] of this.#examples) {
      const former = this.#former.get(name);
      const { state, reason } = row;
      if (state === 'refused') count += 1;
      if (former?.state === state && former.reason === reason) continue;
      this.#ledger.add(row);
      if (state === 'refused') fresh.push({ name: printable(shortened(name, SHOWN_LENGTH)), reason: reason ?? '' });
    }
    this.#ledger.setWithoutRow(this.#withoutRow);
    return { count, fresh };
  }
}

/** The end of a shortened name; that of no file ends with a slash. */
const SHORTENED = '.../';

function shortened(name: string, maxLength = MAX_NAME_LENGTH): string {
  return name.length > maxLength ? `${name.slice(0, SHOWN_LENGTH).toWellFormed()}${SHORTENED}` : name;
}
