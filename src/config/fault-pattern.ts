/**
 * `auth.sessionFaultPattern` is tried on what a service says, and an expression with repetitions of repetitions takes
 * for ever for a text that somebody chose for it. So it is tried when it is read, and given little time when it is used.
 */
import vm from 'node:vm';
import { withinProcessorTime } from '../system/clock.ts';

/** Of a fault so much is looked at (src/remote/soap/faults.ts). */
const FAULT_CHARACTERS = 2048;

/** Of the processor: a busy machine may let the process wait for longer. */
const TRIAL_MS = 200;
const USE_MS = 50;
const MOST_TEXTS = 50;

const MATCHES = "texts.filter((text) => new RegExp(pattern, 'i').test(text)).length > 0";

/** Whether `words` match; undefined if that takes too long. @throws SyntaxError if the pattern is none */
export function matchesInTime(pattern: string, words: string): boolean | undefined {
  return matchesAny(pattern, [words], USE_MS);
}

/** Whether it is a regular expression, and one that is quick for texts made of what stands in it. */
export function isQuickExpression(pattern: string): boolean {
  const pieces = new Set(['a', '0', ' ', ...(pattern.match(/[\p{L}\p{N} ]+/gu) ?? []), ...pattern]);
  // Repeated, with an end that is nowhere in the pattern: the longest way to find out that it does not match.
  const texts = [...pieces]
    .slice(0, MOST_TEXTS)
    .map((piece) => `${piece.repeat(FAULT_CHARACTERS / piece.length)}\u0000`);
  try {
    return matchesAny(pattern, texts, TRIAL_MS) !== undefined;
  } catch {
    // It is no regular expression.
    return false;
  }
}

function matchesAny(pattern: string, texts: readonly string[], mostMs: number): boolean | undefined {
  return withinProcessorTime(
    mostMs,
    (timeout) => vm.runInNewContext(MATCHES, { pattern, texts }, { timeout }) === true,
  );
}
