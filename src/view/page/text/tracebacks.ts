/** The lines of a traceback between its first and its last one, which are folded into one row. */
import type { WindowRow } from '../file/text-window.ts';
import { decode } from './terminal.ts';

/** Fewer lines are not folded. */
const MIN_LINES = 3;
/** Longer ones are not looked for. */
const MAX_LINES = 500;
/** The line before the frames of Python; the frames of Java, Kotlin and JavaScript. */
const HEAD = /Traceback \(.* call last\)/;
const FRAME = /^\s+at \S/;

interface Fold {
  readonly first: number;
  readonly lines: number;
}

/** The folded lines that a row is part of. */
export function foldOf(rows: readonly WindowRow[], index: number): Fold | undefined {
  const isFrame = (row: number) => /^[ \t]$/.test(String.fromCharCode(rows[row]?.bytes[0] ?? 0));
  const textOf = (row: number) => decode(rows[row]?.bytes ?? new Uint8Array(0));
  if (!isFrame(index)) return undefined;
  let [first, end] = [index, index + 1];
  while (first > 0 && end - first <= MAX_LINES && isFrame(first - 1)) first--;
  while (end < rows.length && end - first <= MAX_LINES && isFrame(end)) end++;
  if (end - first < MIN_LINES || end - first > MAX_LINES) return undefined;
  const isTraceback = HEAD.test(textOf(first - 1).trimEnd()) || FRAME.test(textOf(first));
  return isTraceback ? { first, lines: end - first } : undefined;
}
