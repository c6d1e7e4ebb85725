/** How many requests of a kind there may be at a time: a page that asks for more waits, and no poll does. */
import { Refused } from '../refused.ts';

const MOST = { streams: 64, searches: 8, downloads: 16 } as const;
const RETRY_SECONDS = 1;

export type Limited = keyof typeof MOST;

export class Limits {
  readonly #running: Record<Limited, number> = { streams: 0, searches: 0, downloads: 0 };

  /** Takes a place, until what is returned is called. @throws Refused (429) */
  take(kind: Limited): () => void {
    if (this.#running[kind] >= MOST[kind])
      throw new Refused(429, `there are ${MOST[kind]} ${kind} already`, { hint: `try again in ${RETRY_SECONDS} s` });
    this.#running[kind]++;
    let isOver = false;
    return () => {
      if (!isOver) this.#running[kind]--;
      isOver = true;
    };
  }
}
