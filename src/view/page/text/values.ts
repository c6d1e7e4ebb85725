/** What is read out of text: how far a job is, the level of a line of a log. */

export interface ProgressValue {
  /** From 0 to 1. */
  readonly done: number;
  /** The line. */
  readonly words: string;
}

const PERCENT = /(?<![\w.,-])([0-9]+(?:[.,][0-9]+)?)\s*%/g;
/** `12 of 150`, `12/150`, `krok 12 z 150`, `12 von 150`: words that stand between a count and its end. */
const COUNT = /(?<![\w.,/-])([0-9]+)\s*(?:\/|of|out of|von|z|de|di|из)\s*([0-9]+)(?![\w/-]|[.,][0-9])/giu;

/** Undefined if the line has no such value. */
export function progressOf(line: string): ProgressValue | undefined {
  const words = line.trim();
  const percent = [...words.matchAll(PERCENT)].at(-1);
  if (percent !== undefined) return within(Number(percent[1]?.replace(',', '.')) / 100, words);
  for (const [, done = '', of = ''] of [...words.matchAll(COUNT)].reverse()) {
    const progress = Number(of) > 0 ? within(Number(done) / Number(of), words) : undefined;
    if (progress !== undefined) return progress;
  }
  return undefined;
}

const within = (done: number, words: string): ProgressValue | undefined =>
  done >= 0 && done <= 1 ? { done, words } : undefined;

const LEVELS = {
  error: ['FATAL', 'CRITICAL', 'SEVERE', 'ERROR'],
  warning: ['WARNING', 'WARN'],
  info: ['INFO', 'NOTICE'],
  debug: ['DEBUG', 'TRACE'],
} as const;
type Level = keyof typeof LEVELS;

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
