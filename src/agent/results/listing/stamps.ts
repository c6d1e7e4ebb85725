/**
 * When the files of one listing were changed, as far as the listing says so (docs/rest.md 3.3). A file whose date is the
 * same before and after a download is not downloaded again. Dates have whole seconds, so a download begins two seconds
 * after the listing that had the date: a change in between has another date, which the next listing shows. The date is
 * kept in the row of the file, with the content, and its proof is taken back before the next download begins: a kill
 * then leaves no date that spares another content than is here.
 */
import type { ResultRow } from '../../../store/rows.ts';
import { type Clock, sleep } from '../../../system/clock.ts';

type Stamped = Pick<ResultRow, 'stamp' | 'stampProven'>;

export const NO_STAMP: Stamped = { stamp: null, stampProven: false };

/** From a listing to the downloads whose dates it proves. */
const APART_MS = 2_000;

export class Stamps {
  readonly #listed: ReadonlyMap<string, string>;
  readonly #clock: Clock;
  readonly #listedAt: number;
  #areApart = false;

  /** Made when the listing has arrived. */
  constructor(listed: ReadonlyMap<string, string> | undefined, clock: Clock) {
    this.#listed = listed ?? new Map();
    this.#clock = clock;
    this.#listedAt = clock.monotonic();
  }

  /** Whether a download would bring what came last. */
  spares({ name, state, stamp, stampProven }: ResultRow): boolean {
    const isWhole = state === 'synced' || state === 'in-flux';
    return isWhole && stampProven && stamp !== null && stamp === this.#listed.get(name);
  }

  /** Waits until a download of these files is proven by the dates that they have; without dates, not at all. */
  async keepApart(rows: readonly Pick<ResultRow, 'name'>[], signal: AbortSignal): Promise<void> {
    if (!rows.some(({ name }) => this.#listed.has(name))) return;
    const waitMs = this.#listedAt + APART_MS - this.#clock.monotonic();
    if (waitMs > 0) await sleep(this.#clock, waitMs, signal);
    this.#areApart = true;
  }

  /** What is kept of a file that was downloaded. */
  fetched(name: string): Stamped {
    const stamp = this.#listed.get(name) ?? null;
    return { stamp, stampProven: stamp !== null && this.#areApart };
  }
}
