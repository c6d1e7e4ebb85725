/**
 * The listed names of which nothing is fetched. How many there are, the cluster decides: of each reason some have rows in
 * the ledger, as examples, and of all others only their number is kept.
 */
import { printable } from '../../../printable.ts';
import type { ResultRow } from '../../../store/rows.ts';
import type { Ledger } from '../ledger.ts';
import { isOfPatterns, type Skipped } from './selection.ts';

/** With a row, of each reason. */
const MOST_EXAMPLES = 100;
/** Rows of an earlier sync that are held against this one. */
const MOST_FORMER = 10_000;
const MOST_NAME_LENGTH = 3_000;
const SHOWN_LENGTH = 200;

/** Names that are refused: how many there are now, and those of their examples that are new. */
export interface Refusals {
  readonly count: number;
  readonly fresh: readonly { readonly name: string; readonly reason: string }[];
}

export class SkippedNames {
  readonly #ledger: Ledger;
  readonly #examples = new Map<string, ResultRow>();
  readonly #former = new Map<string, ResultRow>();
  readonly #byReason = new Map<string, number>();
  readonly #unkept = { refused: 0, 'left-out': 0 };

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** Takes in a row of the ledger that is of such a name; false if it is of another one. */
  takeFormer(row: ResultRow): boolean {
    if (row.state !== 'refused' && !isOfPatterns(row.reason)) return false;
    if (this.#former.size < MOST_FORMER) this.#former.set(row.name, row);
    else this.#ledger.forget(row.name);
    return true;
  }

  /** The row of a name that is skipped no longer. */
  admit(name: string): ResultRow | undefined {
    const row = this.#former.get(name);
    this.#former.delete(name);
    return row;
  }

  /** Skips a name; whether it is an example, and its row is kept. */
  add(row: ResultRow, { kind, reason }: Skipped): boolean {
    const examples = this.#byReason.get(reason) ?? 0;
    const name = shortened(row.name);
    if (examples >= MOST_EXAMPLES || this.#examples.has(name)) {
      this.#unkept[kind] += 1;
      return false;
    }
    this.#byReason.set(reason, examples + 1);
    this.#examples.set(name, { ...row, name, state: kind, reason });
    return true;
  }

  /** Takes down what changed. */
  end(): Refusals {
    const fresh: { name: string; reason: string }[] = [];
    let count = this.#unkept.refused;
    for (const [name, row] of this.#examples) {
      const former = this.#former.get(name);
      this.#former.delete(name);
      const { state, reason } = row;
      if (state === 'refused') count += 1;
      if (former?.state === state && former.reason === reason) continue;
      this.#ledger.add(row);
      if (state === 'refused') fresh.push({ name: printable(shortened(name, SHOWN_LENGTH)), reason: reason ?? '' });
    }
    for (const row of this.#former.values()) this.#ledger.forget(row.name);
    this.#ledger.setUnkept(this.#unkept);
    return { count, fresh };
  }
}

/** A name that was cut ends as no name of a file does. */
function shortened(name: string, mostLength = MOST_NAME_LENGTH): string {
  return name.length > mostLength ? `${name.slice(0, SHOWN_LENGTH).toWellFormed()}.../` : name;
}
