/** How far one sync of a job's results has come: told to whoever shows it, and kept for `status`. */
import type { JobId } from '../../job.ts';
import type { ResultSyncRow } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import type { Clock } from '../../system/clock.ts';

export interface ProgressOptions {
  readonly store: Store;
  readonly jobId: JobId;
  readonly clock: Clock;
  /** Why the direct way is closed, as far as is known at the beginning. */
  readonly fallback: string | null;
  readonly onProgress?: ((progress: ResultSyncRow) => void) | undefined;
}

/** What became of a file. */
export type Outcome = 'changed' | 'same' | 'linked' | 'failed' | 'left-out';

const SAVED_EVERY_MS = 1_000;

export class Progress {
  /** Files that came, those of them that are new or changed, and those that did not come. */
  readonly tally = { fetched: 0, changed: 0, failed: 0 };
  readonly #options: ProgressOptions;
  #row: ResultSyncRow;
  #savedAt = 0;

  constructor(options: ProgressOptions) {
    this.#options = options;
    const { jobId, clock, fallback } = options;
    const now = clock.now();
    const nothing = { wanted: 0, wantedBytes: null, done: 0, bytes: 0, way: null };
    this.#row = { jobId, startedAt: now, updatedAt: now, endedAt: null, ...nothing, fallback };
  }

  /** So many files are to be fetched, or to become links; null for a size that is not known. */
  begin(wanted: number, sizes: readonly (number | null)[]): void {
    const wantedBytes = sizes.reduce<number | null>(
      (sum, size) => (sum === null || size === null ? null : sum + size),
      0,
    );
    this.#change({ wanted, wantedBytes });
  }

  get bytes(): number {
    return this.#row.bytes;
  }

  /** Bytes arrived by a way. */
  arrived(bytes: number, way: string): void {
    this.#change({ bytes: this.#row.bytes + bytes, way });
  }

  /** A file is done, one way or the other. */
  done(outcome: Outcome): void {
    if (outcome === 'changed' || outcome === 'same') this.tally.fetched += 1;
    if (outcome === 'changed' || outcome === 'failed') this.tally[outcome] += 1;
    this.#change({ done: this.#row.done + 1 });
  }

  /** Why files that should have come directly come by the service; null if the direct way works. */
  fallback(reason: string | null): void {
    this.#change({ fallback: reason });
  }

  end(): void {
    this.#savedAt = 0;
    this.#change({ endedAt: this.#options.clock.now() });
  }

  #change(changes: Partial<ResultSyncRow>): void {
    const { store, clock, onProgress } = this.#options;
    const updatedAt = clock.now();
    this.#row = { ...this.#row, ...changes, updatedAt };
    onProgress?.(this.#row);
    // Nothing due, nothing to tell: the row of the last sync that did something stays.
    if (this.#row.wanted === 0 || (this.#savedAt !== 0 && updatedAt - this.#savedAt < SAVED_EVERY_MS)) return;
    this.#savedAt = updatedAt;
    store.transaction(() => store.resultSyncs.save(this.#row));
  }
}
