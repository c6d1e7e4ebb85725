/**
 * What is read out of text: the rows of a table, how far a job is, which lines have numbers that can be plotted, where
 * to go, the level of a line of a log.
 */
/** What divides the values of a table (RFC 4180, and what spreadsheets make of it). */
const DIVIDERS = [',', ';', '\t'];

/** The rows of a text; the divider is the one that the first row has most of. */
export function csvRows(text: string): string[][] {
  const [first = ''] = text.split('\n', 1);
  const [divider = ','] = [...DIVIDERS].sort((a, b) => first.split(b).length - first.split(a).length);
  const rows: string[][] = [];
  let row: string[] = [];
  let cell = '';
  const endCell = () => {
    row.push(cell);
    cell = '';
  };
  const endRow = () => {
    endCell();
    rows.push(row);
    row = [];
  };
  for (let at = 0; at < text.length; at++) {
    const character = text.charAt(at);
    if (character === '"' && cell === '') {
      const end = quoteEnd(text, at + 1);
      cell = text.slice(at + 1, end).replaceAll('""', '"');
      at = end;
    } else if (character === divider) endCell();
    else if (character === '\n') endRow();
    else if (character !== '\r') cell += character;
  }
  if (cell !== '' || row.length > 0) endRow();
  return rows;
}

/** The rows by the values of a column: numbers by their size and before texts, rows without a value last. */
export function sortedRows(
  rows: readonly (readonly string[])[],
  column: number,
  isFalling: boolean,
): (readonly string[])[] {
  const keyOf = (row: readonly string[]) => {
    const [text, number] = valueIn(row, column);
    return { text, number, rank: text === '' ? 2 : Number.isNaN(number) ? 1 : 0 };
  };
  const sign = isFalling ? -1 : 1;
  return rows
    .map((row) => ({ row, key: keyOf(row) }))
    .sort(({ key: a }, { key: b }) => {
      if (a.rank !== b.rank) return a.rank === 2 || b.rank === 2 ? a.rank - b.rank : sign * (a.rank - b.rank);
      if (a.rank === 0) return sign * (a.number - b.number);
      return sign * a.text.localeCompare(b.text);
    })
    .map(({ row }) => row);
}

/** Whether a column has numbers alone, and at least one. */
export function isNumeric(rows: readonly (readonly string[])[], column: number): boolean {
  const values = rows.map((row) => valueIn(row, column)).filter(([text]) => text !== '');
  return values.length > 0 && values.every(([, number]) => !Number.isNaN(number));
}

function valueIn(row: readonly string[], column: number): readonly [text: string, number: number] {
  const text = (row[column] ?? '').trim();
  return [text, text === '' ? Number.NaN : Number(text.replace(',', '.'))];
}

/** Where a quoted value ends: at a quote that is no pair; at the end of the text if there is none. */
function quoteEnd(text: string, from: number): number {
  for (let at = text.indexOf('"', from); at >= 0; at = text.indexOf('"', at + 2)) if (text[at + 1] !== '"') return at;
  return text.length;
}

export interface Progress {
  /** From 0 to 1. */
  readonly done: number;
  /** The line. */
  readonly words: string;
}

const PERCENT = /(?<![\w.,-])([0-9]+(?:[.,][0-9]+)?)\s*%/g;
/** `12 of 150`, `12/150`, `krok 12 z 150`, `12 von 150`: words that stand between a count and its end. */
const COUNT = /(?<![\w.,/-])([0-9]+)\s*(?:\/|of|out of|von|z|de|di|из)\s*([0-9]+)(?![\w/-]|[.,][0-9])/giu;

/** Undefined if the last line with any value does not have it. */
export function progressOf(text: string): Progress | undefined {
  const words =
    text
      .trimEnd()
      .split(/[\r\n]/)
      .at(-1)
      ?.trim() ?? '';
  const percent = [...words.matchAll(PERCENT)].at(-1);
  if (percent !== undefined) return within(Number(percent[1]?.replace(',', '.')) / 100, words);
  for (const [, done = '', of = ''] of [...words.matchAll(COUNT)].reverse()) {
    const progress = Number(of) > 0 ? within(Number(done) / Number(of), words) : undefined;
    if (progress !== undefined) return progress;
  }
  return undefined;
}

const within = (done: number, words: string): Progress | undefined =>
  done >= 0 && done <= 1 ? { done, words } : undefined;

/** As C and Fortran print them, and with a thousand digits never. */
const NUMBER = /(?<![\w.])[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eEdD][+-]?[0-9]{1,4})?(?![\w.])/g;
/** Of a line, the words around its numbers: as much as a name of it needs. */
const MAX_WORDS = 80;
/** A line is no line of numbers if it is longer. */
const MAX_CHARACTERS = 4_000;

interface NumberLine {
  /** A name for all lines that are alike: `residual #`. */
  readonly words: string;
  /** Which one of the lines it is. */
  readonly index: number;
  /** It has numbers with a point or an exponent: these are measured, others mostly counted. */
  readonly isMeasured: boolean;
}

/** What a line has around its numbers, the same for all lines that are alike; undefined if it is no line of numbers. */
export function kindOf(line: string): string | undefined {
  if (line.length > MAX_CHARACTERS || line.match(NUMBER) === null) return undefined;
  return line.replaceAll(NUMBER, '#').replaceAll(/\s+/g, ' ').trim().slice(0, MAX_WORDS);
}

/**
 * The lines with numbers, one for each kind (the last of it): measured ones first, then the most frequent; kinds of one
 * line are none.
 */
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

/** The target of a jump, as typed: `1200` a line, `@4096` a byte. */
type Destination = { readonly line: number } | { readonly byte: number };

/** Undefined if it is none of them. Lines are typed from 1, and counted from 0. */
export function destination(typed: string, total: number): Destination | undefined {
  const text = typed.replaceAll(/[\s,_]/g, '');
  const [, line] = /^(?:l|line|:)?([0-9]{1,15})$/i.exec(text) ?? [];
  if (line !== undefined) return { line: Math.max(0, Number(line) - 1) };
  const [, byte] = /^(?:@|b|byte)([0-9]{1,15})$/i.exec(text) ?? [];
  return byte === undefined ? undefined : { byte: Math.min(Number(byte), Math.max(0, total - 1)) };
}

const LEVELS = {
  error: ['FATAL', 'CRITICAL', 'SEVERE', 'ERROR'],
  warning: ['WARNING', 'WARN'],
  info: ['INFO', 'NOTICE'],
  debug: ['DEBUG', 'TRACE'],
} as const;
type Level = keyof typeof LEVELS;
/** An expression for lines that are warnings. */
export const WARNINGS = String.raw`\b(?:WARN|WARNING)\b|^[Ww]arn(?:ing)?\b|\w+Warning:`;

/** In capitals anywhere; else as `[error]`, `error: text` (but not `error: 0.02`), `level=error` or `ValueError: text`. */
const LEVEL_PATTERNS = Object.entries(LEVELS).map(([level, words]) => {
  const small = words.map((word) => `[${word.charAt(0)}${word.charAt(0).toLowerCase()}]${word.slice(1).toLowerCase()}`);
  const any = [
    `\\b(?:${words.join('|')})\\b`,
    `(?<=^|\\[|[:;] )(?:${small.join('|')})(?=\\]|:(?! ?[-+.\\d])|$)`,
    `(?<=\\blevel"?[=:] ?"?)(?:${small.join('|')})\\b`,
  ];
  if (level === 'error') any.push('^Traceback \\(', '\\w(?:Error|Exception):');
  return [level as Level, new RegExp(any.join('|'))] as const;
});
/** A level stands after a time, a host and the name of a module at most. */
const LEVEL_CHARACTERS = 100;

/** The level that the beginning of a line names first; undefined if it names none. */
export function levelOf(line: string): Level | undefined {
  const start = line.slice(0, LEVEL_CHARACTERS);
  return LEVEL_PATTERNS.map(([level, pattern]) => ({ level, at: start.search(pattern) }))
    .filter(({ at }) => at >= 0)
    .sort((a, b) => a.at - b.at)[0]?.level;
}
