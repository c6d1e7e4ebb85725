/** How far a job is, as the last line of its progress file says. */

export interface Progress {
  /** From 0 to 1. */
  readonly done: number;
  /** The line. */
  readonly says: string;
}

const PERCENT = /(?<![\w.,-])([0-9]+(?:[.,][0-9]+)?)\s*%/g;
/** `12 of 150`, `12/150`, `krok 12 z 150`, `12 von 150`: words that stand between a count and its end. */
const COUNT = /(?<![\w.,/-])([0-9]+)\s*(?:\/|of|out of|von|z|de|di|из)\s*([0-9]+)(?![\w/-]|[.,][0-9])/giu;

/** Undefined if the last line that says anything does not say it. */
export function progressOf(text: string): Progress | undefined {
  const says =
    text
      .trimEnd()
      .split(/[\r\n]/)
      .at(-1)
      ?.trim() ?? '';
  const percent = [...says.matchAll(PERCENT)].at(-1);
  if (percent !== undefined) return within(Number(percent[1]?.replace(',', '.')) / 100, says);
  for (const [, done = '', of = ''] of [...says.matchAll(COUNT)].reverse()) {
    const progress = Number(of) > 0 ? within(Number(done) / Number(of), says) : undefined;
    if (progress !== undefined) return progress;
  }
  return undefined;
}

const within = (done: number, says: string): Progress | undefined =>
  done >= 0 && done <= 1 ? { done, says } : undefined;
