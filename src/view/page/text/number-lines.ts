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
  readonly numbers: number;
}

/** The lines with numbers, one for each kind (the last of it), the most frequent kind first; kinds of one line are none. */
export function numberLines(lines: readonly string[]): NumberLine[] {
  const kinds = new Map<string, { line: NumberLine; count: number }>();
  for (const [index, line] of lines.entries()) {
    const numbers = line.length > MOST_CHARACTERS ? 0 : (line.match(NUMBER)?.length ?? 0);
    if (numbers === 0) continue;
    const words = line.replaceAll(NUMBER, '#').replaceAll(/\s+/g, ' ').trim().slice(0, MOST_WORDS);
    kinds.set(words, { line: { words, index, numbers }, count: (kinds.get(words)?.count ?? 0) + 1 });
  }
  return [...kinds.values()]
    .filter(({ count }) => count > 1)
    .sort((a, b) => b.count - a.count)
    .map(({ line }) => line);
}
