/** Contents: everything that can be opened, read in ranges, searched and downloaded. */

/**
 * A live file (`task`, `file`) or a result (`result`: its name exactly as listed). `version` is opaque, and changes when
 * the bytes are others: a live file has one for each generation, a result for each fetch. Left out, it is what
 * stands there now. Former generations are contents of the same live file with their own version.
 */
export type ContentQuery =
  | { readonly job: string; readonly task: string; readonly file: LiveFileName; readonly version?: string }
  | { readonly job: string; readonly result: string; readonly version?: string };

export type LiveFileName = 'stdout' | 'stderr' | 'log' | 'progress';

/**
 * With `from`: the window begins with the line that byte `from` is in (to jump). With `at`: exactly there, where another
 * window ended (to go on); with `to`: it ends exactly there, where another window begins (to go back). With none: it ends
 * at the end. At most `bytes` bytes (256 KiB; at least 4 KiB,
 * at most 1 MiB). It is cut at line ends ("\n"); within a line only where a line is longer than the window, or than
 * 64 KiB before `from`, and then between characters of UTF-8. Positions beyond the end
 * count as the end.
 */
export interface LinesQuery {
  readonly from?: number;
  readonly at?: number;
  readonly to?: number;
  readonly bytes?: number;
}

/** The headers of an answer to `api/lines`; its body is the bytes [start, end), nothing more, as application/octet-stream. */
export interface LinesHeaders {
  readonly 'view-version': string;
  readonly 'view-start': string;
  readonly 'view-end': string;
  /** The length of the whole content when it was read. */
  readonly 'view-bytes': string;
  /** `line`: `start` begins a line. `within`: the line began before. */
  readonly 'view-begins': 'line' | 'within';
  /** The number of the line at `start`, from 0; left out while its lines are not counted so far (`FileLength.counted`). */
  readonly 'view-line'?: string;
}

/** One of both. A line beyond the last one is the last one. Waits until the lines are counted so far. */
export interface PlaceQuery {
  readonly line?: number;
  readonly byte?: number;
}

export interface Place {
  readonly version: string;
  /** Where the line begins, and its number from 0. */
  readonly byte: number;
  readonly line: number;
}

export interface Generations {
  /** The version of the mirror itself, and of the former contents that are kept, the youngest first. */
  readonly now: string;
  readonly former: readonly {
    readonly version: string;
    readonly bytes: number;
    /** When it last grew. */
    readonly modifiedAt: number;
    /** The name of its file, as `stdout.log.1`. */
    readonly name: string;
    /** Why it ended; null if that is not kept. */
    readonly reason: string | null;
  }[];
}

/** `csv` and `text` by `api/lines`; the others by `api/preview`. */
export type PreviewKind = 'text' | 'csv' | 'image' | 'pdf' | 'html';
