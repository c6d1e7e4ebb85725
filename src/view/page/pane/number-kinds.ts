/** Which kinds of lines of numbers can be plotted of what is here. */
import type { TextWindow } from '../file/text-window.ts';
import { decode } from '../text/decode.ts';
import { kindOf, numberLines } from '../text/number-lines.ts';

/** Rows that are looked through. */
const MOST_ROWS = 500;

/** A kind of lines: what its lines have around their numbers, and where one of them is. */
export interface Kind {
  readonly words: string;
  readonly byte: number;
}

/** The kinds among the rows around a chosen one, its own first; among the last rows if it is not here. */
export function kindsNear(window: TextWindow, chosenByte: number | undefined): Kind[] {
  const { rows } = window;
  const found = chosenByte === undefined ? -1 : rows.indexOf(chosenByte);
  const chosen = found < 0 ? rows.length : found;
  const first = Math.max(0, Math.min(chosen + MOST_ROWS / 2, rows.length) - MOST_ROWS);
  const lines = rows.slice(first, first + MOST_ROWS).map((_, index) => decode(window.bytesOf(first + index)));
  const own = kindOf(lines[chosen - first] ?? '');
  return numberLines(lines)
    .map(({ words, index }) => ({ words, byte: rows[first + index] ?? 0 }))
    .sort((a, b) => Number(b.words === own) - Number(a.words === own));
}
