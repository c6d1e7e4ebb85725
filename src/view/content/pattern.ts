/**
 * What is looked for in bytes. A text becomes an expression over bytes (each one as the character of its number), in which
 * every character is the choice of its ways of being written, each as UTF-8: no repetition, so nothing can run away, and
 * an index is a byte. An expression of a person runs over the text of each line, and only for so long.
 */
import { isUtf8 } from 'node:buffer';
import vm from 'node:vm';
import { Refused } from '../refused.ts';
import { NEWLINE } from './window.ts';

export interface PatternOptions {
  readonly text: string;
  readonly matchCase: boolean;
  readonly wholeWord: boolean;
  readonly isExpression: boolean;
}

export type Match = readonly [byte: number, length: number];

/** Matches in bytes that begin at or behind `from`; positions are from their beginning. They are lines, or a piece of one. */
export type Pattern = (bytes: Buffer, from: number) => Match[];

const MOST_CHARACTERS = 256;
/** Of one slice: a good expression takes a few milliseconds. */
const EXPRESSION_MS = 300;

/** @throws Refused (400) */
export function patternOf(options: PatternOptions): Pattern {
  const { text, isExpression } = options;
  if (text === '' || text.length > MOST_CHARACTERS || /[\r\n]/.test(text))
    throw new Refused(400, `what is looked for has 1 to ${MOST_CHARACTERS} characters, on one line`);
  return isExpression ? expressionPattern(options) : textPattern(options);
}

const WORD_BYTE = '[0-9A-Za-z_\\x80-\\xff]';

function textPattern({ text, matchCase, wholeWord }: PatternOptions): Pattern {
  const characters = [...text].map((character) => (matchCase ? [character] : waysOf(character)));
  const source = characters.map((ways) => `(?:${ways.map(bytesOf).join('|')})`).join('');
  const expression = new RegExp(wholeWord ? `(?<!${WORD_BYTE})${source}(?!${WORD_BYTE})` : source, 'g');
  return (bytes, from) => {
    expression.lastIndex = from;
    const matches = bytes.toString('latin1').matchAll(expression);
    return Array.from(matches, ({ 0: found, index }) => [index, found.length] as const);
  };
}

/** A character in upper and lower case. */
function waysOf(character: string): string[] {
  const ways = [character, character.toLowerCase(), character.toUpperCase(), character.toUpperCase().toLowerCase()];
  return [...new Set(ways)];
}

const bytesOf = (text: string) =>
  [...Buffer.from(text)].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('');

const FIND = `
  expression.lastIndex = from;
  const found = [];
  for (const match of text.matchAll(expression)) if (match[0] !== '') found.push(match.index, match[0].length);
  found`;

function expressionPattern({ text, matchCase, wholeWord }: PatternOptions): Pattern {
  const source = wholeWord ? `(?<![\\p{L}\\p{N}_])(?:${text})(?![\\p{L}\\p{N}_])` : text;
  // In another realm: what runs there can be ended.
  const context = vm.createContext({ source, flags: matchCase ? 'gmu' : 'gimu', text: '', from: 0 });
  try {
    vm.runInContext('var expression = new RegExp(source, flags)', context, { timeout: EXPRESSION_MS });
  } catch {
    throw new Refused(400, 'this is no regular expression');
  }
  const find = new vm.Script(`{${FIND}}`);
  const matchesIn = (bytes: Buffer, from: number, timeout: number): Match[] => {
    // A line with bytes that are no text is read as if each of them were a character.
    const encoding = isUtf8(bytes) ? 'utf8' : 'latin1';
    context['text'] = bytes.toString(encoding);
    context['from'] = bytes.toString(encoding, 0, from).length;
    return inBytes(find.runInContext(context, { timeout }) as number[], context['text'], encoding);
  };
  return (bytes, from) =>
    inTime((timeLeft) =>
      linesOf(bytes, from).flatMap((line) => {
        const found = matchesIn(line.bytes, line.from, timeLeft());
        return found.map(([byte, length]) => [line.start + byte, length] as const);
      }),
    );
}

interface Lines {
  readonly start: number;
  readonly bytes: Buffer;
  readonly from: number;
}

/** All of it if it is text, else each line by itself. */
function linesOf(bytes: Buffer, from: number): Lines[] {
  if (isUtf8(bytes)) return [{ start: 0, bytes, from }];
  const lines: Lines[] = [];
  for (let start = 0; start < bytes.length; ) {
    const end = bytes.indexOf(NEWLINE, start) + 1 || bytes.length;
    if (end > from) lines.push({ start, bytes: bytes.subarray(start, end), from: Math.max(0, from - start) });
    start = end;
  }
  return lines;
}

function inTime<T>(work: (timeLeft: () => number) => T): T {
  const endsAt = performance.now() + EXPRESSION_MS;
  const timeLeft = () => Math.max(1, Math.ceil(endsAt - performance.now()));
  try {
    return work(timeLeft);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
    throw new Refused(400, 'this expression takes too long', {
      hint: 'write it without a repetition inside of another one',
    });
  }
}

/** Indexes and lengths in a text, one after the other, as those in its bytes. */
function inBytes(found: readonly number[], text: string, encoding: 'utf8' | 'latin1'): Match[] {
  const matches: Match[] = [];
  let byte = 0;
  let at = 0;
  for (let each = 0; each < found.length; each += 2) {
    const index = found[each] ?? 0;
    const end = index + (found[each + 1] ?? 0);
    byte += Buffer.byteLength(text.slice(at, index), encoding);
    const length = Buffer.byteLength(text.slice(index, end), encoding);
    matches.push([byte, length]);
    byte += length;
    at = end;
  }
  return matches;
}
