/** Very long lines: what is shown of one until somebody asks for all of it. */
import type { Run } from './terminal.ts';

/** Characters of a line that are shown; with some left over, so that a fold is never shorter than what it says. */
export const FOLD_AT = 2_000;
const SLACK = 200;

export interface Folded {
  readonly runs: readonly Run[];
  /** Characters behind the fold. */
  readonly hidden: number;
}

/** Cut between characters, never within one. */
export function folded(runs: readonly Run[], most = FOLD_AT): Folded {
  const length = runs.reduce((sum, { text }) => sum + text.length, 0);
  if (length <= most + SLACK) return { runs, hidden: 0 };
  const kept: Run[] = [];
  let room = most;
  for (const { text, look } of runs) {
    if (room <= 0) break;
    const piece = text.length <= room ? text : wholeCharacters(text, room);
    kept.push({ text: piece, look });
    room -= Math.max(1, text.length);
  }
  return { runs: kept, hidden: length - kept.reduce((sum, { text }) => sum + text.length, 0) };
}

/** So much of the text, less what would be cut off a pair of surrogates or leave a mark without its letter. */
function wholeCharacters(text: string, room: number): string {
  const containing = new Intl.Segmenter().segment(text.slice(0, room + 64)).containing(room);
  return text.slice(0, containing === undefined ? room : containing.index);
}
