/**
 * What is looked for in bytes. A text becomes an expression over bytes (each one as the character of its number), in which
 * every character is the choice of its ways of being written, each as UTF-8: no repetition, so nothing can run away, and
 * an index is a byte. An expression of a person runs over the text of each line, and only for so long.
 */
import { isUtf8 } from 'node:buffer';
import vm from 'node:vm';
import { withinProcessorTime } from '../../system/processor-time.ts';
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
/** Of the processor, for one slice: a good expression takes a few milliseconds. */
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
  const source = characters.map((ways) => oneOf([...new Set(ways.map(bytesOf))])).join('');
  const expression = new RegExp(wholeWord ? `(?<!${WORD_BYTE})${source}(?!${WORD_BYTE})` : source, 'g');
  const lengths = characters.map((ways) => [...new Set(ways.map((way) => Buffer.byteLength(way)))]);
  // Mostly every way is as long as the others, and where a match ends says where it began.
  const length = lengths.every(({ length: different }) => different === 1)
    ? lengths.reduce((sum, [each = 0]) => sum + each, 0)
    : undefined;
  return (bytes, from) => {
    const found: Match[] = [];
    const piece = bytes.toString('latin1');
    expression.lastIndex = from;
    if (length !== undefined) while (expression.test(piece)) found.push([expression.lastIndex - length, length]);
    else for (const match of piece.matchAll(expression)) found.push([match.index, match[0].length]);
    return found;
  };
}

const oneOf = (ways: readonly string[]) => (ways.length === 1 ? ways.join('') : `(?:${ways.join('|')})`);

/** A character in upper and lower case. */
function waysOf(character: string): string[] {
  const ways = [character, character.toLowerCase(), character.toUpperCase(), character.toUpperCase().toLowerCase()];
  return [...new Set(ways)];
}

const bytesOf = (text: string) =>
  [...Buffer.from(text)].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('');

const FIND = `
  pieces.map(({ text, from }) => {
    expression.lastIndex = from;
    const found = [];
    for (const match of text.matchAll(expression)) if (match[0] !== '') found.push(match.index, match[0].length);
    return found;
  })`;

function expressionPattern({ text, matchCase, wholeWord }: PatternOptions): Pattern {
  const source = wholeWord ? `(?<![\\p{L}\\p{N}_])(?:${text})(?![\\p{L}\\p{N}_])` : text;
  // In another realm: what runs there can be ended.
  const context = vm.createContext({ source, flags: matchCase ? 'gmu' : 'gimu' });
  try {
    vm.runInContext('var expression = new RegExp(source, flags)', context);
  } catch {
    throw new Refused(400, 'this is no regular expression');
  }
  const find = new vm.Script(FIND);
  return (bytes, from) => {
    const pieces = textsOf(bytes, from);
    context['pieces'] = pieces;
    const found = withinTime(find, context);
    if (found === undefined)
      throw new Refused(400, 'this expression takes too long', {
        hint: 'write it without a repetition inside of another one',
      });
    return pieces.flatMap((piece, index) => inBytes(found[index] ?? [], piece));
  };
}

/** Undefined if it takes too long. @throws Refused where V8 has no stack left for the groups of the expression */
function withinTime(find: vm.Script, context: vm.Context): number[][] | undefined {
  try {
    return withinProcessorTime(EXPRESSION_MS, (timeout) => find.runInContext(context, { timeout }) as number[][]);
  } catch {
    throw new Refused(400, 'this expression needs too much memory', { hint: 'write it with fewer groups' });
  }
}

/** Text of bytes from `start` on, in which matches are wanted that begin at or behind `from`. */
interface Piece {
  readonly start: number;
  readonly text: string;
  readonly encoding: 'utf8' | 'latin1';
  readonly from: number;
}

/** All of the bytes if they are text, else each line; one that is none, as if each byte were a character. */
function textsOf(bytes: Buffer, from: number): Piece[] {
  const piece = (start: number, end: number): Piece => {
    const encoding = isUtf8(bytes.subarray(start, end)) ? 'utf8' : 'latin1';
    const before = bytes.toString(encoding, start, Math.max(start, Math.min(from, end)));
    return { start, encoding, text: bytes.toString(encoding, start, end), from: before.length };
  };
  if (isUtf8(bytes)) return [piece(0, bytes.length)];
  const pieces: Piece[] = [];
  for (let start = 0; start < bytes.length; ) {
    const end = bytes.indexOf(NEWLINE, start) + 1 || bytes.length;
    if (end > from) pieces.push(piece(start, end));
    start = end;
  }
  return pieces;
}

/** Indexes and lengths in a text, one after the other, as those in the bytes. */
function inBytes(found: readonly number[], { start, text, encoding }: Piece): Match[] {
  const matches: Match[] = [];
  let byte = start;
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
