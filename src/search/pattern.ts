/** The pattern of a search: the regular expression runs only on lines with a text that each match contains. */
import { isAscii } from 'node:buffer';
import { NEWLINE } from '../bytes.ts';
import { JobtailError } from '../errors.ts';
import { statesOf, withoutColours } from '../line-states.ts';
import { literal } from '../quick-pattern.ts';
import { TextTable } from './text-table.ts';
import { textsIn } from './texts.ts';

export interface Pattern {
  /** A regular expression of JavaScript (flags s and u), for one line as UTF-8. */
  readonly source: string;
  readonly ignoreCase?: boolean | undefined;
  readonly invert?: boolean | undefined;
  /** Each state of a line is compared for itself, without colours, in pieces of so many characters. Default: the line. */
  readonly maxCharacters?: number | undefined;
}

/** Whole lines of a file. Each ends with a newline, except the last line of a file and a line that was cut. */
export class BufferWindow {
  readonly bytes: Buffer;
  /** Whether the last line goes on in the next window. */
  readonly isCut: boolean;
  #text: string | undefined;
  #isAscii: boolean | undefined;
  #hasRareCases: boolean | undefined;
  #hasColours: boolean | undefined;

  constructor(bytes: Buffer, isCut = false) {
    this.bytes = bytes;
    this.isCut = isCut;
  }

  get text(): string {
    this.#text ??= this.bytes.toString('latin1');
    return this.#text;
  }

  /** Whether there are other cases of s and k than those of ASCII. */
  get hasRareCases(): boolean {
    this.#hasRareCases ??= RARE_CASES.some((bytes) => this.bytes.includes(bytes));
    return this.#hasRareCases;
  }

  get hasColours(): boolean {
    this.#hasColours ??= this.bytes.includes(ESC);
    return this.#hasColours;
  }

  /** Much faster than searching `text`, if the bytes do not occur. */
  has(bytes: Buffer): boolean {
    return this.#text !== undefined || this.bytes.includes(bytes);
  }

  lineEnd(start: number): number {
    const newline = this.text.indexOf('\n', start);
    return newline < 0 ? this.bytes.length : newline + 1;
  }

  /** The number of lines in [start, end). */
  linesIn(start: number, end: number): number {
    const { text } = this;
    let lines = 0;
    for (let at = start; at < end; lines++) at = text.indexOf('\n', at) + 1 || end;
    return lines;
  }

  /** Without the newline, one character for each byte. */
  line(start: number, end: number): string {
    const hasNewline = this.bytes[end - 1] === NEWLINE;
    return this.text.slice(start, hasNewline ? end - 1 : end);
  }

  decodedLine(start: number, end: number): string {
    this.#isAscii ??= isAscii(this.bytes);
    const line = this.line(start, end);
    return this.#isAscii ? line : this.bytes.toString('utf8', start, start + line.length);
  }
}

const ESC = 0x1b;
const RARE_CASES = ['\u017f', '\u212a'].map((character) => Buffer.from(character));

/** The offset of the first occurrence at or after `from`; -1 if there is none. */
type Finder = (window: BufferWindow, from: number) => number;

export class LineMatcher {
  /** The line that `next` found; its end includes the newline. */
  start = 0;
  end = 0;
  readonly #expression: RegExp;
  readonly #invert: boolean;
  /** Undefined where each line must be tested. */
  readonly #find: Finder | undefined;
  /** Whether the pattern is nothing but a text: the expression decides no line, or takes no time. */
  readonly isText: boolean;
  /** Whether other characters than those of ASCII may match letters of ASCII. */
  readonly #hasRareCases: boolean;
  readonly #maxCharacters: number | undefined;

  /** @throws JobtailError usage, if the source is no regular expression */
  constructor(pattern: Pattern) {
    const { source, ignoreCase = false, invert = false, maxCharacters } = pattern;
    this.#maxCharacters = maxCharacters;
    this.#expression = expressionOf(pattern);
    this.#invert = invert;
    const { texts, isWhole } = textsIn(source, ignoreCase);
    this.#find = invert ? undefined : finderOf(texts, ignoreCase);
    this.isText = isWhole;
    this.#hasRareCases = ignoreCase && /[ks]/i.test(texts.join());
  }

  /** Finds the next selected line at or after `from`, the start of a line. */
  next(window: BufferWindow, from: number): boolean {
    for (let at = from; at < window.bytes.length; at = this.end) {
      const find = this.#mayHideTexts(window) ? undefined : this.#find;
      const found = find === undefined ? at : find(window, at);
      if (found < 0) return false;
      this.start = at;
      this.end = window.lineEnd(at);
      // Often it is in the next line, and a backward search is slow.
      if (this.end <= found) {
        this.start = window.text.lastIndexOf('\n', found) + 1;
        this.end = window.lineEnd(found);
      }
      if (find !== undefined && this.isText) return true;
      if (this.#isMatch(window.decodedLine(this.start, this.end)) !== this.#invert) return true;
    }
    return false;
  }

  /** Whether a line may match without one of the texts: with another case of a letter, or a colour within the text. */
  #mayHideTexts(window: BufferWindow): boolean {
    if (this.#hasRareCases && window.hasRareCases) return true;
    return this.#maxCharacters !== undefined && window.hasColours;
  }

  get isInverted(): boolean {
    return this.#invert;
  }

  #isMatch(line: string): boolean {
    if (this.#maxCharacters === undefined) return this.#expression.test(line);
    return statesOf(line, this.#maxCharacters).some((state) => this.#expression.test(withoutColours(state)));
  }
}

/** @throws JobtailError usage */
export function expressionOf({ source, ignoreCase }: Pattern, flags = ''): RegExp {
  try {
    return new RegExp(source, `${flags}su${ignoreCase === true ? 'i' : ''}`);
  } catch (error) {
    const [reason] = /[^:]*$/.exec(error instanceof Error ? error.message : '') ?? [];
    throw new JobtailError('usage', `"${source}" is no regular expression:${reason}`, {
      hint: 'write a backslash before each of ( ) [ ] { } * + ? . ^ $ | that stands for itself',
    });
  }
}

/** Shorter texts are in most lines. */
const MIN_TEXT_BYTES = 3;
/** From so many on, a table is faster than one expression. */
const MANY_TEXTS = 20;

function finderOf(texts: readonly string[], ignoreCase: boolean): Finder | undefined {
  const asBytes = texts.map((text) => Buffer.from(text).toString('latin1'));
  const [first] = asBytes;
  if (first === undefined) return undefined;
  if (asBytes.length === 1 && !ignoreCase) {
    const bytes = Buffer.from(first, 'latin1');
    return (window, from) => (window.has(bytes) ? window.text.indexOf(first, from) : -1);
  }
  const needed = asBytes.filter((text) => !asBytes.some((other) => other !== text && text.includes(other)));
  if (needed.some(({ length }) => length < MIN_TEXT_BYTES)) return undefined;
  if (needed.length >= MANY_TEXTS) {
    const table = new TextTable(needed.map((text) => Buffer.from(text, 'latin1')));
    return ({ bytes }, from) => table.find(bytes, from);
  }
  const expression = new RegExp([...new Set(needed)].map(literal).join('|'), ignoreCase ? 'gi' : 'g');
  return ({ text }, from) => {
    expression.lastIndex = from;
    return expression.exec(text)?.index ?? -1;
  };
}
