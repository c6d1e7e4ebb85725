/** Refusals: why a request gets nothing, and how many requests of a kind there may be at a time. */
import type { Refusal } from './contract/addresses.ts';

type RefusedStatus = 400 | 401 | 403 | 404 | 405 | 409 | 415 | 429 | 503;

export class Refused extends Error {
  readonly status: RefusedStatus;
  readonly refusal: Refusal;

  constructor(status: RefusedStatus, message: string, more: Partial<Refusal> = {}) {
    super(message);
    this.status = status;
    this.refusal = { ...more, message };
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
