/** The lines of a traceback between its first and its last one, which are folded into one row. */
import type { TextWindow } from '../file/text-window.ts';
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
export function foldOf(window: TextWindow, index: number): Fold | undefined {
  const isFrame = (row: number) => /^[ \t]$/.test(String.fromCharCode(window.bytesOf(row)[0] ?? 0));
  const { length } = window.rows;
  if (!isFrame(index)) return undefined;
  let [first, end] = [index, index + 1];
  while (first > 0 && end - first <= MAX_LINES && isFrame(first - 1)) first--;
  while (end < length && end - first <= MAX_LINES && isFrame(end)) end++;
  if (end - first < MIN_LINES || end - first > MAX_LINES) return undefined;
  const head = first === 0 ? '' : decode(window.bytesOf(first - 1)).trimEnd();
  const isTraceback = HEAD.test(head) || FRAME.test(decode(window.bytesOf(first)));
  return isTraceback ? { first, lines: end - first } : undefined;
}
