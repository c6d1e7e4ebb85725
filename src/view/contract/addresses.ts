/**
 * What passes between the server of the view and its page. Types only.
 *
 * Every address is relative to that of the page (`./`), so that a reverse proxy may put a path before it; the page keeps
 * where it is behind `#`. Only GET. Times are milliseconds since 1970 of the server's clock, lengths and
 * positions are bytes, ids are decimal text (64 bits). All text is as it came from outside: the page shows it as text,
 * never as anything else.
 *
 *   ./                       the page; `?ticket=...` makes the cookie of a session once, and leads to `./` without it
 *   api/hello?nonce=...      `Hello`: proves that the server has the token; the one answer without a session
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
 * Every answer that is no success is a `Refusal` as JSON: 400 (a wrong query), 401 (no session), 403 (a foreign Host or
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
