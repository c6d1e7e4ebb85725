/** How many requests of a kind there may be at a time: a page that asks for more tries again, and no poll waits. */
import { Refused } from '../refused.ts';

/** A window is in memory until it is sent. */
const MAX = { streams: 64, searches: 8, downloads: 16, windows: 32 } as const;
const RETRY_SECONDS = 1;

export type Limited = keyof typeof MAX;

export class Limits {
  readonly #running: Record<Limited, number> = { streams: 0, searches: 0, downloads: 0, windows: 0 };

  /** Takes a place, until what is returned is called. @throws Refused (429) */
  take(kind: Limited): () => void {
    if (this.#running[kind] >= MAX[kind])
      throw new Refused(429, `there are ${MAX[kind]} ${kind} already`, { hint: `try again in ${RETRY_SECONDS} s` });
    this.#running[kind]++;
    let isOver = false;
    return () => {
      if (!isOver) this.#running[kind]--;
      isOver = true;
    };
  }
}
