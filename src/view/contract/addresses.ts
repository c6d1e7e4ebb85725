/**
 * What passes between the server of the view and its page. Types only.
 *
 * Every address is relative to that of the page (`./`), so that a reverse proxy may put a path before it; the page
 * keeps where it is behind `#`. Only GET. Times are milliseconds since 1970 of the server's clock, lengths and
 * positions are bytes, ids are decimal text (64 bits). All text is as it came from outside: the page shows it as text,
 * never as anything else.
 *
 * Each address below `api/` but `api/hello` wants `Authorization: Bearer` with the token or the access of a session.
 *
 *   ./                       the page; with `?ticket=...`, it asks for a session
 *   assets/NAME              what the page is made of; kept by the browser for ever
 *   api/hello?nonce=...      `Hello`: proves that the server has the token, or the key of `session=...`
 *   api/session              `Session`: for `Authorization: Ticket`, once, and for the access of a session
 *   api/pass?to=...          `{address}`: of `raw?...` or `preview?...`, opened without a header until the view restarts
 *   api/events?LOOKS         `EventLine`s of what the page looks at
 *   api/generations?FILE     `Generations`: what there is of one live file
 *   api/lines?CONTENT&...    bytes of a content, cut at lines (`LinesQuery`). Headers: `view-version`;
 *                          `view-start`, where they begin; `view-bytes`, how long the content is; `view-begins`,
 *                          `line` or `within` one; `view-line`, the number of the first one once it is counted
 *   api/place?CONTENT&X      `Place`: where a line begins (`line=`; beyond the last one: the last one), or which line a
 *                            byte is in (`byte=`). Waits until the lines are counted so far
 *   api/search?CONTENT&...   `SearchLine`s, as they are found (`SearchQuery`)
 *   api/find?text&regex      `FindLine`s: lines of the mirrors of all jobs, whatever their case
 *   api/errors               lines of JSON, `ErrorGroups`: lines that look like errors, of all jobs
 *   api/numbers?CONTENT&like&from  `NumbersLine`s: from byte `from`, the numbers of the lines with the same words as the
 *                            line at byte `like`
 *   api/raw?CONTENT&plain    the bytes themselves, as a download, or as plain text (`plain=1`)
 *   api/preview?CONTENT      an image or a PDF, for a sandboxed frame (`PreviewKind`); 415 for others
 *   api/results?job&X        `ResultEntries`: one directory (`under=a/b/`), from behind the entry `after=`, of the results
 *                            of a job; or one result (`name=`)
 *
 * Every answer that is no success is a `Refusal` as JSON: 400 (a wrong query), 401 (no session), 403 (a page of another
 * origin), 404 (nothing there), 409 (`error.version`: the content is another by now), 415, 429 (too many at a time; try
 * again after `Retry-After` seconds), 500, 503 (the state cannot be read now).
 */
import type { LiveFileName } from '../../job.ts';
import type { ResultState } from '../../store/rows.ts';

export type { LiveFileName, ResultState };

export interface Refusal {
  readonly error: RefusalError;
}

export interface RefusalError {
  readonly code: string;
  readonly message: string;
  readonly hint: string | null;
  /** With 409: what stands there now. */
  readonly version?: string;
}

/** A failure, with what to do. */
export interface ShownError {
  readonly code: string;
  readonly message: string;
  readonly hint: string | null;
  readonly since: number;
  readonly retryAt?: number;
  /** It is one failure of the service, however many jobs have it. */
  readonly isOfService?: boolean;
}

/**
 * A live file (`task`, `file`) or a result (`result`: its name exactly as listed). `version` is opaque, and changes
 * when the bytes are others: a live file has one for each generation, a result for each fetch. Left out, it is what
 * stands there now. Former generations are contents of the same live file with their own version.
 */
export type ContentQuery =
  | { readonly job: string; readonly task: string; readonly file: LiveFileName; readonly version?: string }
  | { readonly job: string; readonly result: string; readonly version?: string };

/**
 * With `from`: the window begins with the line that byte `from` is in (to jump). With `at`: exactly there, where
 * another window ended (to go on); with `to`: it ends exactly there, where another window begins (to go back). With
 * none: it ends at the end. At most `bytes` bytes (256 KiB; at least 4 KiB, at most 1 MiB). It is cut at line ends
 * ("\n"); within a line only where a line is longer than the window, or than 64 KiB before `from`, and then between
 * characters of UTF-8. Positions beyond the end count as the end.
 */
export interface LinesQuery {
  readonly from?: number | undefined;
  readonly at?: number | undefined;
  readonly to?: number | undefined;
  readonly bytes?: number;
}

export interface LinePlace {
  readonly version: string;
  /** Where the line begins, and its number from 0. */
  readonly byte: number;
  readonly line: number;
  /** The length of the content. */
  readonly bytes: number;
}

export interface Generations {
  /** The version of the mirror itself (`g` and its generation), and of the former contents that are kept, the youngest first. */
  readonly now: string;
  readonly former: readonly {
    readonly version: string;
    readonly generation: number;
    readonly bytes: number;
  }[];
  /** Why generations began, where that is kept, and the first byte that differed from the generation before. */
  readonly began: readonly { readonly generation: number; readonly at: number; readonly reason: string }[];
}

/** `text` in rows, the others by `api/preview`. */
export type PreviewKind = 'text' | 'image' | 'pdf';

/**
 * `text` is what is looked for, at most 256 characters; `regex` takes it as a regular expression, line by line. `errors`
 * instead of them: the lines that `agent errors` shows, each from its error to its end. Without `from`: the whole content, counting everything. With it: `max` matches that begin at or behind it. The search
 * ends when the page closes the answer.
 */
export interface SearchQuery {
  readonly text?: string;
  readonly case?: '1';
  readonly regex?: '1';
  readonly errors?: '1';
  readonly from?: number | undefined;
  readonly max?: number | undefined;
}

/** One line of JSON each (application/x-ndjson). */
export type SearchLine =
  /** Where matches begin and how long they are, in order; the first 10,000 of all. */
  | { readonly at: readonly (readonly [byte: number, length: number])[] }
  /** So far: bytes looked through, of so many, and matches. Several times a second. */
  | { readonly searched: number; readonly of: number; readonly count: number }
  /** The last line. `cut`: why not everything was looked through. */
  | { readonly done: true; readonly count: number; readonly version: string; readonly cut?: string };

/** The first and the last line of each task that looks like an error, those that are alike together: found so far. */
export interface ErrorGroups {
  readonly files: number;
  readonly filesDone: number;
  /** Whether it is the last line of the answer. */
  readonly isDone: boolean;
  /** Why not everything was searched. */
  readonly cut?: string;
  /** Tasks with such a line. */
  readonly tasks: number;
  /** The first 200: those of failed jobs, then those of most tasks; the place is that of the first of them. */
  readonly groups: readonly (FoundViewLine & { readonly tasks: number })[];
}

interface FoundPlace {
  readonly job: string;
  readonly task: string;
  readonly file: LiveFileName;
}

interface FoundText {
  /** From 1. */
  readonly line: number;
  readonly text: string;
}

export interface FoundViewLine extends FoundPlace, FoundText {}

export interface FoundLines extends FoundPlace {
  readonly lines: readonly FoundText[];
}

/** A file with lines that match: the first 20 of them, and how many there are. Of all files, the first 1,000 lines. */
export interface FoundFile extends FoundLines {
  readonly matches: number;
}

/** One line of JSON each (application/x-ndjson). */
export type FindLine =
  | FoundFile
  /** The last line. `cut`: why not everything was searched. */
  | { readonly done: true; readonly files: number; readonly cut?: string };

/** One line of JSON each (application/x-ndjson). */
export type NumbersLine =
  /** The first line: names of the columns are the word before a number, the head of a CSV file, or `#1`. */
  | { readonly columns: readonly string[]; readonly version: string }
  | NumbersRows
  /** The last line: up to here, so many rows. Beyond 50,000 only each second one is sent, then each fourth. */
  | { readonly done: true; readonly to: number; readonly count: number };

/** Rows in order: which one each is, from 0; where its line begins, and its numbers, null for one that is not finite. */
export interface NumbersRows {
  readonly index: readonly number[];
  readonly at: readonly number[];
  readonly rows: readonly (readonly (number | null)[])[];
}

export interface ResultEntries {
  readonly entries: readonly (ResultDirectory | ResultFile)[];
  /** There are more behind the last one. */
  readonly more: boolean;
}

export interface ResultDirectory {
  readonly kind: 'directory';
  /** The task whose live files are in it; null if it is none, or several. */
  readonly task: string | null;
  /** The name that the request used in `under`. */
  readonly name: string;
  readonly files: number;
  readonly bytes: number;
  readonly states: Readonly<Partial<Record<ResultState, number>>>;
}

/** The name is exactly as listed. */
export interface ResultFile {
  readonly kind: 'file';
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

/** What answers at an address: `GET api/hello?nonce=...`. */
export interface ProvenHello {
  /** Names this start of the server. */
  readonly start: string;
  readonly proof: string;
}

/** What a page gets: it sends `Authorization: Bearer ACCESS`, and keeps the key (`NUMBER.SECRET`) to itself. */
export interface PageSession {
  readonly access: string;
  readonly key: string;
}
