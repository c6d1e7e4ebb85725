/**
 * When one listing said that its files were changed, as far as it says so (docs/rest.md 3.3). A file that kept its stamp
 * need not be fetched again, once it was: but one that is rewritten in the moment of the fetch may keep it, so only a
 * second fetch that brought the same, a while later, shows that the stamp is that of the content. The stamp is kept in
 * the row of the file, with the content, and its proof is taken back before the next fetch is begun: a kill then leaves
 * no stamp that spares another content than is here.
 */
import type { ResultRow } from '../../../store/rows.ts';

type Stamped = Pick<ResultRow, 'stamp' | 'stampProven'>;

export const NO_STAMP: Stamped = { stamp: null, stampProven: false };

/** Stamps have whole seconds: what is fetched later than this after a listing cannot be rewritten within its second. */
const APART_MS = 2_000;

export class Stamps {
  readonly #listed: ReadonlyMap<string, string>;

  constructor(listed: ReadonlyMap<string, string> = new Map()) {
    this.#listed = listed;
  }

  /** Whether a fetch would bring what came last. */
  spares({ name, state, stamp, stampProven }: ResultRow): boolean {
    return state === 'synced' && stampProven && stamp !== null && stamp === this.#listed.get(name);
  }

  /** What is kept of a file that was fetched; `row` is that of before, `listedAt` when the listing came. */
  fetched({ name, stamp: before, fetchedAt }: ResultRow, isSame: boolean, listedAt: number): Stamped {
    const stamp = this.#listed.get(name) ?? null;
    const isApart = fetchedAt !== null && listedAt - fetchedAt >= APART_MS;
    return { stamp, stampProven: stamp !== null && isSame && isApart && before === stamp };
  }
}
