/** The results of a job, a directory at a time. */
import type { PreviewKind } from './contents.ts';

/** `under`: a directory as `a/b/`, '' for the top. `after`: the `name` of the last entry of the page before. */
export interface ResultsQuery {
  readonly job: string;
  readonly under?: string;
  readonly after?: string;
}

export interface ResultEntries {
  readonly entries: readonly (ResultDirectory | ResultFile)[];
  /** There are more behind the last one. */
  readonly more: boolean;
}

export interface ResultDirectory {
  readonly kind: 'directory';
  /** As it is asked for by `under`. */
  readonly name: string;
  readonly files: number;
  readonly bytes: number;
  readonly states: Readonly<Partial<Record<ResultState, number>>>;
}

/**
 * listed: not fetched yet. synced: as the service had it at `fetchedAt`. in-flux: it changed between two fetches. linked:
 * it is a live file. failed, left-out, refused (its name is unsafe): see `reason`.
 */
export type ResultState = 'listed' | 'synced' | 'in-flux' | 'linked' | 'failed' | 'refused' | 'left-out';

export interface ResultFile {
  readonly kind: 'file';
  /** Exactly as listed. */
  readonly name: string;
  readonly state: ResultState;
  readonly reason: string | null;
  readonly bytes: number | null;
  readonly sha256: string | null;
  readonly fetchedAt: number | null;
  /** The live file it is a link to, as `9001/stdout`. */
  readonly live: string | null;
  /** How it can be looked at, by its name; `text` for all others. */
  readonly preview: PreviewKind;
}
