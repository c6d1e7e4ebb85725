/** How long a program may take: in all, or without a sign that it goes on. */

export type Limit = { readonly totalMs: number } | IdleLimit;

export interface IdleLimit {
  readonly idleMs: number;
  /** A number that changes while the program goes on; if left out, its standard output tells. Standard error never does. */
  readonly progress?: () => Promise<number>;
}

/** How often `progress` is asked. */
const LOOK_MS = 500;

/** Calls back when the limit is over. */
export class LimitClock {
  readonly #ms: number;
  readonly #onOver: () => void;
  /** Whether the output of the program counts. */
  readonly #hears: boolean;
  readonly #looking: NodeJS.Timeout | undefined;
  #timer: NodeJS.Timeout | undefined;
  #hasEnded = false;

  constructor(limit: Limit, onOver: () => void) {
    const { totalMs, idleMs, progress }: Partial<IdleLimit & { totalMs: number }> = limit;
    this.#ms = totalMs ?? idleMs ?? 0;
    this.#onOver = onOver;
    this.#hears = totalMs === undefined && progress === undefined;
    if (progress !== undefined) this.#looking = setInterval(this.#lookAt(progress), Math.min(LOOK_MS, this.#ms / 4));
    this.#begin();
  }

  /** The program said something: while that is worked upon, the program is not waited for. */
  pause(): void {
    if (this.#hears) clearTimeout(this.#timer);
  }

  /** It is waited for again. */
  go(): void {
    if (this.#hears) this.#begin();
  }

  end(): void {
    this.#hasEnded = true;
    clearTimeout(this.#timer);
    clearInterval(this.#looking);
  }

  #begin(): void {
    if (this.#hasEnded) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#onOver, this.#ms);
  }

  #lookAt(progress: () => Promise<number>): () => Promise<void> {
    let last: number | undefined;
    let isLooking = false;
    return async () => {
      if (isLooking) return;
      isLooking = true;
      const now = await progress().catch(() => last);
      isLooking = false;
      if (now !== last) this.#begin();
      last = now;
    };
  }
}
