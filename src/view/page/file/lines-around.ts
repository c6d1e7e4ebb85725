/** The lines around the matches of a search, in batches as they come onto the screen. */
import { signal } from '@preact/signals';
import type { Around, ContentQuery } from '../../contract/addresses.ts';
import { address, askJson } from '../api.ts';
import type { Match } from './search.ts';

/** One place less than a request may name: the one before shows which lines are on the page already. */
const BATCH = 25;
/** Lines before and after each match. */
export const CONTEXT_LINES = 2;
/** After a failure, the next attempt waits this long. */
const RETRY_MS = 1_000;

interface Batch {
  /** Matches that it covers: the last batch grows. */
  readonly count: number;
  readonly places: Around['places'];
}

export class LinesAround {
  /** Changes when a batch arrived. */
  readonly changes = signal(0);
  readonly #content: () => ContentQuery;
  readonly #matches: readonly Match[];
  readonly #batches = new Map<number, Batch>();
  readonly #over = new AbortController();
  #isLoading = false;

  constructor(content: () => ContentQuery, matches: readonly Match[]) {
    this.#content = content;
    this.#matches = matches;
  }

  /** The lines of a match; undefined while they are not here. */
  of(index: number): Around['places'][number] | undefined {
    return this.#batches.get(Math.floor(index / BATCH))?.places[index % BATCH];
  }

  /** Requests what is missing of these matches, one batch at a time. */
  want(first: number, last: number): void {
    for (let batch = Math.floor(first / BATCH); batch <= Math.floor(last / BATCH) && !this.#isLoading; batch++) {
      const count = Math.min(BATCH, this.#matches.length - batch * BATCH);
      if ((this.#batches.get(batch)?.count ?? 0) < count) void this.#load(batch, count);
    }
  }

  stop(): void {
    this.#over.abort();
  }

  async #load(batch: number, count: number): Promise<void> {
    this.#isLoading = true;
    const { signal: over } = this.#over;
    const from = batch * BATCH;
    const first = Math.max(0, from - 1);
    const at = this.#matches.slice(first, from + count).map(([byte]) => String(byte));
    try {
      const to = address('around', { ...this.#content(), at, context: CONTEXT_LINES });
      const { places } = await askJson<Around>(to, { signal: over });
      this.#batches.set(batch, { count, places: places.slice(from - first) });
    } catch {
      // The view is gone, busy, or the file was rewritten: then the search begins anew.
      if (!over.aborted) await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
    this.#isLoading = false;
    if (!over.aborted) this.changes.value++;
  }
}
