/** Rows of numbers for a plot: beyond so many, only each second one is told, then each fourth, ... */

import type { Content } from '../content/content.ts';
import { numbersOf, type Shape } from '../content/numbers.ts';
import type { NumbersLine } from '../contract/searches.ts';

const MOST_ROWS = 50_000;

export async function* thinnedRows(content: Content, shape: Shape, from: number): AsyncGenerator<NumbersLine> {
  yield { columns: shape.columns, version: content.version };
  let seen = 0;
  let told = 0;
  let every = 1;
  let to = from;
  for await (const slice of numbersOf(content, shape, from)) {
    to = slice.to;
    const kept = slice.at
      .map((_, index) => index)
      .filter(() => {
        const isTold = seen++ % every === 0;
        if (isTold && ++told >= MOST_ROWS) {
          told = 0;
          every *= 2;
        }
        return isTold;
      });
    if (kept.length > 0)
      yield { at: kept.map((index) => slice.at[index] ?? 0), rows: kept.map((index) => slice.rows[index] ?? []) };
  }
  yield { done: true, to, rows: seen, every };
}
