/**
 * Gathers what visits of jobs leave to be committed: many that end within a short time are one transaction, and so one
 * flush of the database.
 */

export interface CommitsOptions {
  /** Runs all of `work` as one transaction, or throws and leaves nothing of it. */
  readonly transaction: (work: () => void) => void;
  /** Calls back after `delayMs`; the returned function takes that back. */
  readonly timer: (delayMs: number, callback: () => void) => () => void;
}

interface Waiting {
  readonly write: () => void;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** How long those who wait for their commit wait for others. */
const GATHER_MS = 5;

export class Commits {
  readonly #options: CommitsOptions;
  #waiting: Waiting[] = [];
  #dueInMs = Number.POSITIVE_INFINITY;
  #cancel: (() => void) | undefined;

  constructor(options: CommitsOptions) {
    this.#options = options;
  }

  /**
   * Resolves when what `write` writes is on the disk, which is at most `withinMs` from now. All that was gathered
   * succeeds or fails together.
   */
  commit(write: () => void, withinMs = GATHER_MS): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ write, resolve, reject });
      if (withinMs >= this.#dueInMs) return;
      this.#cancel?.();
      this.#dueInMs = withinMs;
      this.#cancel = this.#options.timer(withinMs, () => this.flush());
    });
  }

  /** Commits at once what was gathered. */
  flush(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#dueInMs = Number.POSITIVE_INFINITY;
    const waiting = this.#waiting;
    if (waiting.length === 0) return;
    this.#waiting = [];
    try {
      this.#options.transaction(() => {
        for (const { write } of waiting) write();
      });
    } catch (error) {
      for (const { reject } of waiting) reject(error);
      return;
    }
    for (const { resolve } of waiting) resolve();
  }
}
