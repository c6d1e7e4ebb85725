/** Lines of numbers: `step 10 residual 6.6e-3`, or a row of a CSV file. Alike are those with the same words around them. */
import { withoutColours } from './line-states.ts';

/**
 * Each part ends where its digits do, so that no line makes it try them in many ways. What numbers look like in what jobs write, with a unit behind them (`12.5s`); not within a word or an id (`node-7`,
 * `v1.2.3`, `a_1`).
 */
const NUMBER =
  /(?<![\p{L}\p{N}_.]|\p{L}-)[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?![0-9])(?:[eEdD][+-]?[0-9]+)?(?=\p{L}{0,3}(?![\p{L}\p{N}_]|\.[0-9]))|(?:nan|inf(?:inity)?)(?![\p{L}\p{N}_]))/giu;
/** The same where all is ASCII, which most of any log is: ten times as quick. */
const ASCII_NUMBER =
  /(?<![A-Za-z0-9_.]|[A-Za-z]-)[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?![0-9])(?:[eEdD][+-]?[0-9]+)?(?=[A-Za-z]{0,3}(?![A-Za-z0-9_]|\.[0-9]))|(?:nan|inf(?:inity)?)(?![A-Za-z0-9_]))/gi;
const ASCII = /^[\t -~\r]*$/;

/** The time of a line is no number of it. */
const TIME =
  /\b(?:\d{4}[-/]\d\d[-/]\d\d[T ]?)?\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?|\b\d{4}[-/]\d\d[-/]\d\d\b/g;
/** A longer line is none of numbers. */
export const MAX_LINE_BYTES = 4096;
const MAX_COLUMNS = 32;
const MAX_NAME = 40;
/** White space, around one number or none. */
const SPACES = /[ \t]+\0?[ \t]*|\0[ \t]+/g;

/** What lines that are alike have in common. */
export interface Shape {
  /** The text between the numbers. */
  readonly words: string;
  readonly columns: readonly string[];
}

/** The shape of a line; undefined if it has no numbers. `head` is the line that a CSV file begins with. */
export function shapeOf(line: string, head: string): Shape | undefined {
  const { words, values } = numbersIn(line);
  if (values.length === 0 || values.length > MAX_COLUMNS) return undefined;
  const heads = head.split(/[,;\t]/);
  const isHead = heads.length === values.length && numbersIn(head).values.length === 0 && /^[,;\t\s\0]+$/.test(words);
  const columns = words.split('\0').slice(0, -1);
  return { words, columns: columns.map((before, index) => nameOf(isHead ? (heads[index] ?? '') : before, index)) };
}

/** The last word before a number, with what stands in parentheses behind it. */
function nameOf(text: string, index: number): string {
  const last = [...text.matchAll(/[\p{L}_][\p{L}\p{N}_.-]*(?:[ \t]?\([^()]*\))?/gu)].at(-1);
  const isLast = last !== undefined && !/[\p{L}\p{N}]/u.test(text.slice(last.index + last[0].length));
  return isLast ? last[0].slice(0, MAX_NAME) : `#${index + 1}`;
}

/** The numbers of a line, and what stands around them: each one as NUL, and spaces as one. */
export function numbersIn(line: string): { readonly words: string; readonly values: readonly number[] } {
  // Only what is there is looked for: lines are many.
  const seen = line.includes('\u001b') ? withoutColours(line) : line;
  const isAscii = ASCII.test(seen);
  const whole = isAscii ? seen : seen.replaceAll('\0', ' ');
  const text = (whole.includes(':') || whole.includes('-') ? whole.replaceAll(TIME, '@') : whole).trim();
  const values: number[] = [];
  const words = text.replace(isAscii ? ASCII_NUMBER : NUMBER, (number) => {
    values.push(numberFrom(number));
    return '\0';
  });
  return { words: words.replaceAll(SPACES, (spaces) => (spaces.includes('\0') ? '\0' : ' ')), values };
}

/** Fortran writes 1.0D+03. Numbers that are none, or endless, are not plotted. */
const numberFrom = (text: string) => {
  const number = Number(text);
  return Number.isNaN(number) ? Number(text.replace(/[dD]/, 'e')) : number;
};
