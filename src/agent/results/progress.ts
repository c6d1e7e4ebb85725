/** How far one look at a job's results has come: told to whoever shows it, and kept for `status`. */
import type { JobId } from '../../job.ts';
import type { ResultPassRow } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';

export interface ProgressOptions {
  readonly store: Store;
  readonly jobId: JobId;
  readonly now: () => number;
  readonly onProgress: ((progress: ResultPassRow) => void) | undefined;
}

const SAVED_EVERY_MS = 1_000;

export class Progress {
  readonly #options: ProgressOptions;
  #row: ResultPassRow;
  #savedAt = 0;

  constructor(options: ProgressOptions, wanted: number) {
    this.#options = options;
    const { jobId } = options;
    const now = options.now();
    const nothing = { done: 0, bytes: 0, way: null, fallback: null };
    this.#row = { jobId, startedAt: now, updatedAt: now, endedAt: null, wanted, ...nothing };
    this.#change({});
  }

  get bytes(): number {
    return this.#row.bytes;
  }

  /** Bytes arrived by a way. */
  arrived(bytes: number, way: string): void {
    this.#change({ bytes: this.#row.bytes + bytes, way });
  }

  /** A file is done, one way or the other. */
  done(): void {
    this.#change({ done: this.#row.done + 1 });
  }

  /** Files that should have come directly come by SOAP. */
  fallback(reason: string): void {
    this.#change({ fallback: reason });
  }

  end(): void {
    this.#savedAt = 0;
    this.#change({ endedAt: this.#options.now() });
  }

  #change(changes: Partial<ResultPassRow>): void {
    const { store, now, onProgress } = this.#options;
    const updatedAt = now();
    this.#row = { ...this.#row, ...changes, updatedAt };
    onProgress?.(this.#row);
    // Nothing due, nothing to tell: the row of the last look that did something stays.
    if (this.#row.wanted === 0 || (this.#savedAt !== 0 && updatedAt - this.#savedAt < SAVED_EVERY_MS)) return;
    this.#savedAt = updatedAt;
    store.transaction(() => store.resultPasses.save(this.#row));
  }
}
