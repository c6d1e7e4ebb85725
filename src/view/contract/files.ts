/** The live files of a job, as they grow. */

import type { Trouble } from './addresses.ts';
import type { LiveFileName } from './contents.ts';

/** What changed of the live files of a job: `whole` if these are all there are. */
export interface FilesChange {
  readonly jobId: string;
  readonly whole: boolean;
  readonly files: readonly FileState[];
}

export interface FileState {
  readonly taskId: string;
  readonly file: LiveFileName;
  readonly version: string;
  /** Generations so far, from 1. */
  readonly generation: number;
  /** Committed bytes. */
  readonly bytes: number;
  readonly exact: boolean;
  readonly inexactBytes: number;
  /** Proven against the raw bytes of the server, all of it. */
  readonly verified: boolean;
  readonly grownAt: number | null;
  readonly error: Trouble | null;
}

/**
 * A mirror grew, or a new generation began (another version: what the page has of it is a former one then). Fewer bytes
 * of the same version: what was behind them is taken back.
 */
export interface FileLength {
  /** `501/9001/stdout`. */
  readonly file: string;
  readonly version: string;
  readonly bytes: number;
  /** Lines are counted up to this byte; there are so many line ends before it. */
  readonly counted: number;
  readonly lines: number;
}
