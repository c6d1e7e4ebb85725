/**
 * What passes between the server of the view and its page. Types only.
 *
 * Every address is relative to that of the page (`./`), so that a reverse proxy may put a path before it; the page keeps
 * where it is behind `#`. Only GET. Times are milliseconds since 1970 of the server's clock, lengths and
 * positions are bytes, ids are decimal text (64 bits). All text is as it came from outside: the page shows it as text,
 * never as anything else.
 *
 *   ./                       the page; `?token=...` once makes the cookie, and leads to `./` without it
 *   assets/NAME              what the page is made of; kept by the browser for ever
 *   api/events?LOOKS         server-sent events of what the page looks at (`Events`)
 *   api/generations?FILE     `Generations`: what there is of one live file
 *   api/lines?CONTENT&...    bytes of a content, cut at lines (`LinesQuery`, `LINES_HEADERS`)
 *   api/place?CONTENT&...    `Place`: where a line begins, or which line a byte is in
 *   api/search?CONTENT&...   `SearchLine`s, as they are found (`SearchQuery`)
 *   api/numbers?CONTENT&...  `NumbersLine`s: the numbers of all lines that are like one (`NumbersQuery`)
 *   api/raw?CONTENT          the bytes themselves, as a download; takes one `Range`
 *   api/preview?CONTENT      an image, a PDF or an HTML page, for a sandboxed frame (`PreviewKind`); 415 for others
 *   api/results?...          `ResultEntries`: one directory of the results of a job (`ResultsQuery`)
 *   api/archive?job&under    the results below a directory as a zip, as it streams
 *
 * Every answer that is no success is a `Refusal` as JSON: 400 (a wrong query), 401 (no token), 403 (a foreign Host or
 * Origin), 404 (nothing there), 409 (`version`: the content is another by now), 415, 416, 429 (too many at a time; try
 * again after `Retry-After` seconds), 500, 503 (the state cannot be read now).
 */

export interface Refusal {
  /** Of the status, or of a failure (src/errors.ts). */
  readonly code: string;
  readonly message: string;
  readonly hint?: string;
  /** With 409: what stands there now. */
  readonly version?: string;
}

// ---- Contents: everything that can be opened, read in ranges, searched and downloaded.

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

/**
 * `text` is what is looked for, at most 256 characters; `regex` takes it as a regular expression, line by line. Without
 * `from` and `before`: the whole content, counting everything. With `from`, `most` matches that begin at or behind it;
 * with `before`, the last one that begins before it. The search ends when the page closes the answer.
 */
export interface SearchQuery {
  readonly text: string;
  readonly case?: '1';
  readonly word?: '1';
  readonly regex?: '1';
  readonly from?: number;
  readonly before?: number;
  readonly most?: number;
}

/** One line of JSON each (application/x-ndjson). */
export type SearchLine =
  /** Where matches begin and how long they are, in order; the first 10,000 of all. */
  | { readonly at: readonly (readonly [byte: number, length: number])[] }
  /** So far: bytes looked through, of so many, and matches. Several times a second. */
  | { readonly searched: number; readonly of: number; readonly count: number }
  /** Matches in each of 256 equal parts of the content, for marks beside it; before the last line. */
  | { readonly marks: readonly number[] }
  /** The last line. `cut`: why not everything was looked through. */
  | { readonly done: true; readonly count: number; readonly version: string; readonly cut?: string };

/**
 * `like`: a byte of a line with numbers. Alike are the lines with the same words around as many numbers. From `from` to the
 * end as it stands now: to go on as the file grows, ask again from `to`.
 */
export interface NumbersQuery {
  readonly like: number;
  readonly from?: number;
}

/** One line of JSON each (application/x-ndjson). */
export type NumbersLine =
  /** The first line: a name for each number of such a line: the word before it, the head of a CSV file, or `#1`. */
  | { readonly columns: readonly string[]; readonly version: string }
  /** Rows in order: where each line begins, and its numbers; null for one that is not finite. */
  | { readonly at: readonly number[]; readonly rows: readonly (readonly (number | null)[])[] }
  /** The last line. Beyond 50,000 rows only each `every`-th is told. */
  | { readonly done: true; readonly to: number; readonly rows: number; readonly every: number };

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
  }[];
}

// ---- What is pushed.

/**
 * The query of `api/events`. To look at something else, the page opens another stream and closes this one; a hidden page
 * closes its stream. Nothing is watched that no stream names.
 */
export interface Looks {
  /** `jobs=1`: all jobs, as `jobs`. */
  readonly jobs?: '1';
  /** `job=501`, up to 8 of them: a job with its files, as `job` and `files`. */
  readonly job?: readonly string[];
  /** `file=501/9001/stdout`, up to 32 of them: how long its mirror is, as `length`, within 200 ms of each append. */
  readonly file?: readonly string[];
  /** `service=1`: the service and the agent, as `service`, `figures` and `figure`. */
  readonly service?: '1';
}

/**
 * By the name of the event; `data` is one line of JSON. After the stream opens, everything that it looks at comes once,
 * whole; then what changed. EventSource opens a stream that broke again by itself, and everything comes once again.
 */
export interface Events {
  readonly hello: Hello;
  readonly agent: AgentState;
  readonly jobs: JobsChange;
  readonly job: JobDetail;
  readonly files: FilesChange;
  /** Such a job was never followed. */
  readonly missing: { readonly jobId: string };
  readonly length: FileLength;
  readonly service: ServiceState;
  readonly figures: Figures;
  readonly figure: Figure;
  /** What keeps the server from telling, as the store that cannot be read; null when it is over. */
  readonly trouble: { readonly message: string; readonly hint: string | null } | null;
}

export interface Hello {
  /** Of the program. Another one than before: the page loads itself again. */
  readonly program: string;
  /** The server's clock. */
  readonly now: number;
}

export interface AgentState {
  /** False: nothing new comes until there is one (`agent run`). */
  readonly running: boolean;
  readonly pid: number | null;
  /** Jobs of the user that are followed without being named; null if none are. */
  readonly watchMine: { readonly following: number; readonly waiting: number } | null;
}

/** A failure, with what to do. */
export interface Trouble {
  readonly code: string;
  readonly message: string;
  readonly hint: string | null;
  /** When it first appeared. */
  readonly since: number;
  /** When it is tried again. */
  readonly retryAt?: number;
}

/** What changed of the jobs: `whole` if these are all there are. */
export interface JobsChange {
  readonly whole: boolean;
  readonly jobs: readonly JobSummary[];
  readonly gone: readonly string[];
  /** Of jobs of which nothing else changed: when they were last visited. */
  readonly polledAt: Readonly<Record<string, number>>;
}

/** What a job is to the agent. */
export type WatchState = 'watched' | 'ending' | 'ended' | 'settled';

export interface JobSummary {
  readonly jobId: string;
  /** As the middleware tells them, if it does. */
  readonly name: string | null;
  readonly jobState: string | null;
  /** `over`: nothing more comes but what is flushed late; null for a state that is not known. */
  readonly phase: 'active' | 'over' | null;
  readonly state: WatchState;
  readonly source: 'config' | 'command' | 'mine';
  readonly tasks: number;
  /** It has tasks that are not known yet. */
  readonly lookingForTasks: boolean;
  readonly liveFiles: number;
  readonly liveBytes: number;
  readonly watchedAt: number;
  /** Null while it never was. Lag is since min(polledAt, error.since), unless it is ended or settled. */
  readonly polledAt: number | null;
  readonly grownAt: number | null;
  /** What changed last: growth, a state, a result. */
  readonly changedAt: number;
  /**
   * Committed bytes of its live files at moments of the last hour, the oldest first, at most 61: closer together while it is
   * young. From the last one until now nothing changed. The first one may be a little older.
   */
  readonly growth: readonly (readonly [at: number, bytes: number])[];
  readonly results: ResultCounts | null;
  /** The first failure of the job or of one of its files. */
  readonly error: Trouble | null;
  readonly failingFiles: number;
  readonly inexactBytes: number;
  readonly refusedEntries: number;
}

/** Null where results are off. `synced` is what is here, links included; `failed` includes refused names. */
export interface ResultCounts {
  readonly listed: number;
  readonly synced: number;
  readonly linked: number;
  readonly inFlux: number;
  readonly queued: number;
  readonly failed: number;
  readonly refused: number;
  readonly leftOut: number;
  readonly bytes: number;
}

export interface JobDetail extends JobSummary {
  readonly taskList: readonly TaskDetail[];
  /** Why no task is found, and what to do. */
  readonly tasksHint: string | null;
  /** ISO text as told; null if not told. */
  readonly submitTime: string | null;
  readonly startTime: string | null;
  readonly endTime: string | null;
  /** How results come: the last look at them, which runs while `endedAt` is null. */
  readonly lastLook: {
    readonly startedAt: number;
    readonly updatedAt: number;
    readonly endedAt: number | null;
    readonly wanted: number;
    readonly done: number;
    readonly bytes: number;
    readonly bytesPerSecond: number;
    /** `soap` (the service, whichever its protocol), or the way of a direct transfer. */
    readonly way: string | null;
    /** Why files that should have come directly came by the service. */
    readonly fallback: string | null;
  } | null;
}

export interface TaskDetail {
  readonly taskId: string;
  readonly name: string | null;
  readonly taskState: string | null;
  readonly startTime: string | null;
  readonly endTime: string | null;
  readonly errorMessage: string | null;
}

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

// ---- Results.

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

/** `csv` and `text` by `api/lines`; the others by `api/preview`. */
export type PreviewKind = 'text' | 'csv' | 'image' | 'pdf' | 'html';

// ---- The service.

export interface ServiceState {
  /** Of the file-transfer service. */
  readonly address: string;
  readonly protocol: 'soap' | 'rest';
  /** What was learned of the server, by the name of the habit. */
  readonly learned: readonly { readonly name: string; readonly value: string }[];
  /** The last look at the service that tells of jobs; null where there is none. */
  readonly jobService: {
    readonly lookedAt: number | null;
    readonly nextLookAt: number | null;
    readonly failures: number;
    readonly error: Trouble | null;
    readonly listed: number | null;
  } | null;
  /** Calls at a time and a minute that the configuration allows. */
  readonly concurrency: number;
  readonly requestsPerMinute: number;
  readonly disks: readonly Disk[];
  /** What only the agent itself knows is told: this server runs within it. */
  readonly withinAgent: boolean;
}

export interface Disk {
  readonly name: 'mirror' | 'state';
  readonly directory: string;
  readonly freeBytes: number;
  readonly totalBytes: number;
}

/** Since the start, the oldest first; the older they are the further apart, so that there are at most 1,440. */
export interface Figures {
  readonly startedAt: number;
  readonly figures: readonly Figure[];
}

/**
 * What was so at one moment, each ten seconds. The counts of `calls` are since the figure before (all of them together
 * where older figures were thinned).
 */
export interface Figure {
  readonly at: number;
  /** Seconds that the counts are of. */
  readonly seconds: number;
  readonly liveBytes: number;
  readonly watchedJobs: number;
  readonly failingJobs: number;
  readonly failingFiles: number;
  readonly freeBytes: Readonly<Record<string, number>>;
  /** Null where this server does not run within the agent. */
  readonly agent: {
    /** By operation. */
    readonly calls: Readonly<Record<string, CallFigures>>;
    /** Failed calls and sign-ins by the code of the failure. */
    readonly failures: Readonly<Record<string, number>>;
    readonly signIns: number;
    /** Calls that wait for their turn now. */
    readonly waiting: number;
    readonly mirroredBytes: number;
    readonly resultBytes: number;
  } | null;
}

export interface CallFigures {
  readonly calls: number;
  readonly bytes: number;
  /** All of them together, and the longest. */
  readonly totalMs: number;
  readonly longestMs: number;
}
