/** Which lines of a text are lines of numbers, and which of them are alike. */

/** As C and Fortran print them, and with a thousand digits never. */
const NUMBER = /(?<![\w.])[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eEdD][+-]?[0-9]{1,4})?(?![\w.])/g;
/** Of a line, the words around its numbers: as much as a name of it needs. */
const MOST_WORDS = 80;
/** A line is no line of numbers if it is longer. */
const MOST_CHARACTERS = 4_000;

export interface NumberLine {
  /** A name for all lines that are alike: `residual #`. */
  readonly words: string;
  /** Which one of the lines it is. */
  readonly index: number;
  /** It has numbers with a point or an exponent: these are measured, others mostly counted. */
  readonly isMeasured: boolean;
}

/** What a line has around its numbers, the same for all lines that are alike; undefined if it is no line of numbers. */
export function kindOf(line: string): string | undefined {
  if (line.length > MOST_CHARACTERS || line.match(NUMBER) === null) return undefined;
  return line.replaceAll(NUMBER, '#').replaceAll(/\s+/g, ' ').trim().slice(0, MOST_WORDS);
}

/** The lines with numbers, one for each kind (the last of it): measured ones first, then the most frequent; kinds of one line are none. */
export function numberLines(lines: readonly string[]): NumberLine[] {
  const kinds = new Map<string, { line: NumberLine; count: number }>();
  for (const [index, line] of lines.entries()) {
    const words = kindOf(line);
    if (words === undefined) continue;
    const isMeasured = (line.match(NUMBER) ?? []).some((number) => /[.eEdD]/.test(number));
    kinds.set(words, { line: { words, index, isMeasured }, count: (kinds.get(words)?.count ?? 0) + 1 });
  }
  return [...kinds.values()]
    .filter(({ count }) => count > 1)
    .sort((a, b) => Number(b.line.isMeasured) - Number(a.line.isMeasured) || b.count - a.count)
    .map(({ line }) => line);
}
