/** Refusals: why a request gets nothing, and how many requests of a kind there may be at a time. */
import { type ErrorCode, JobtailError } from '../errors.ts';

type Status = 400 | 401 | 403 | 404 | 405 | 409 | 415 | 429;

/** Those that are no wrong request. */
const CODES: Partial<Record<Status, ErrorCode>> = {
  401: 'permission',
  403: 'permission',
  409: 'superseded',
  429: 'rate-limited',
};

interface RefusedOptions {
  readonly hint?: string;
  readonly version?: string;
}

export class Refused extends JobtailError {
  readonly status: Status;
  /** With 409: that of the content which is there now. */
  readonly version: string | undefined;

  constructor(status: Status, message: string, { hint, version }: RefusedOptions = {}) {
    super(CODES[status] ?? 'usage', message, { hint });
    this.status = status;
    this.version = version;
  }
}

/** The requested content was replaced. */
export const changed = (version: string): Refused =>
  new Refused(409, 'the file was truncated or rewritten meanwhile', { version });

export const notThere = (what: string): Refused => new Refused(404, `there is no ${what}`);

/** Too many requests of a kind at a time: the page tries again, and no poll waits. */
const MAX = { streams: 64, searches: 8, downloads: 16, windows: 32 } as const;

export type Limited = keyof typeof MAX;

export class Limits {
  readonly #running: Record<Limited, number> = { streams: 0, searches: 0, downloads: 0, windows: 0 };

  /** Takes a place, until what is returned is called. @throws Refused (429) */
  take(kind: Limited): () => void {
    if (this.#running[kind] >= MAX[kind])
      throw new Refused(429, `there are ${MAX[kind]} ${kind} already`, { hint: 'try again in 1 s' });
    this.#running[kind]++;
    let isOver = false;
    return () => {
      if (!isOver) this.#running[kind]--;
      isOver = true;
    };
  }
}
