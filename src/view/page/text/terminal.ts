/** The bytes of a file as a terminal shows them, with marks for what cannot be seen, and nothing that would act. */
import Anser from 'anser';
import { INVISIBLE_IN_TEXT } from '../../../printable.ts';

const DECODER = new TextDecoder('utf-8', { ignoreBOM: true });

/** Bytes that are no part of a character of UTF-8 become U+FFFD, which is marked. */
export const decode = (bytes: Uint8Array): string => DECODER.decode(bytes);

/** A text in an older encoding has fewer bytes that are none of UTF-8. */
const MAX_WRONG_SHARE = 0.3;

/** Whether bytes at the beginning of a file are those of no text: as git has it, or mostly none of UTF-8. */
export function isBinary(beginning: Uint8Array): boolean {
  if (beginning.includes(0)) return true;
  const wrong = decode(beginning).split('\ufffd').length - 1;
  return wrong > MAX_WRONG_SHARE * beginning.length;
}

export interface Piece {
  readonly text: string;
  /** What the text stands for, if it is a mark. */
  readonly means?: string;
}

const UNSEEN = new RegExp(`${INVISIBLE_IN_TEXT}|\\ufffd`, 'u');
const APART = new RegExp(`(${UNSEEN.source})`, 'u');

/** The text in pieces; every second one is a mark. */
export function pieces(text: string): Piece[] {
  if (!UNSEEN.test(text)) return [{ text }];
  return text
    .split(APART)
    .map((part, index) => (index % 2 === 1 && part !== '\t' ? mark(part) : { text: part }))
    .filter((piece) => piece.text !== '');
}

function mark(character: string): Piece {
  if (character === '\ufffd') return { text: character, means: 'bytes that are no text, or U+FFFD itself' };
  const code = character.codePointAt(0) ?? 0;
  // There are pictures of the controls of ASCII.
  if (code < 0x20) return { text: String.fromCodePoint(0x2400 + code), means: `control character ${code}` };
  if (code === 0x7f) return { text: '\u2421', means: 'control character 127' };
  return { text: `U+${code.toString(16).toUpperCase().padStart(4, '0')}`, means: 'a character that cannot be seen' };
}

/** How a piece of text looks. Colours are the name of one of a terminal's sixteen (`ansi-red`), or `rgb(...)`. */
export interface TextStyle {
  readonly colour: string | null;
  readonly background: string | null;
  readonly decorations: readonly string[];
}

export interface Run {
  readonly text: string;
  readonly style: TextStyle | null;
}

const ESC = '\u001b';
/** A line without these is shown as it is. */
const ACTING = new RegExp(`[${ESC}\\r\\u0008]`);

/** What moves the place where the next character goes, or empties the line around it. */
const MOVE = new RegExp(`(\\r|\\u0008|${ESC}\\[[0-9]*[CDGK])`);
/** Colours (SGR) pass, as the first group; other sequences show nothing. One that does not end is no sequence. */
const SEQUENCE = new RegExp(
  [
    `(${ESC}\\[[0-9;:]*m)`,
    `${ESC}\\[[0-?]*[ -/]*[@-~]`,
    `${ESC}[\\]PX^_][^\\u0007${ESC}]*(?:\\u0007|${ESC}\\\\)`,
    `${ESC}[ -/]+[0-~]`,
    `${ESC}[0-9=>78cDEHMNOZ]`,
  ].join('|'),
  'g',
);
/** So many are looked at, the last ones: each of them mostly writes over all of the one before. */
const MAX_MOVES = 100;
/** No job writes at a column far beyond what it shows. */
const MAX_COLUMNS = 10_000;

/** Lines as a terminal would show them, without what only a terminal understands. */
export function plainText(bytes: Uint8Array): string {
  const lines = decode(bytes).split('\n');
  return lines.map(plainLine).join('\n').toWellFormed();
}

/** One line, without its end. */
export function plainLine(line: string): string {
  if (!ACTING.test(line)) return line;
  return shown(line)
    .map(({ text }) => text)
    .join('');
}

/** The line, without its end. `before` is what the lines above leave switched on, as `coloursOf` found it. */
export function shown(line: string, before = ''): Run[] {
  const painter = new Anser();
  const parts = `${before}${line.replace(/(?<!\r)\r+$/, '')}`.split(MOVE);
  if (parts.length === 1) return paint(painter, parts[0] ?? '');
  const skipped = Math.max(0, parts.length - 2 * MAX_MOVES - 1);
  return overwritten(painter, [coloursOf(parts.slice(0, skipped).join('')), ...parts.slice(skipped)]);
}

/** The colour sequences of a text since the last one that resets all, which a terminal keeps for what follows. */
export function coloursOf(text: string): string {
  const all = text.match(new RegExp(`${ESC}\\[[0-9;:]*m`, 'g')) ?? [];
  const reset = all.findLastIndex((sequence) => /\[[0;]*m$/.test(sequence));
  return all.slice(reset + 1).join('');
}

/** Runs of equal style. */
function paint(painter: Anser, text: string): Run[] {
  const clean = text.replaceAll(SEQUENCE, (_, colour?: string) => (colour === undefined ? '' : plainColours(colour)));
  return painter
    .ansiToJson(clean, { use_classes: true, remove_empty: true })
    .map((entry) => ({ text: entry.content, style: styleOf(entry) }));
}

/** The newer form with colons, as the older one that everybody reads. */
const plainColours = (sequence: string) =>
  sequence
    .replaceAll(/\b4:[0-9]/g, '4')
    .replaceAll(/([34]8:2):[0-9]*(?=:[0-9]+:[0-9]+:[0-9]+)/g, '$1')
    .replaceAll(':', ';');

/** Parts of a line, where each second one moves the place of the next character. */
function overwritten(painter: Anser, [colours = '', ...parts]: readonly string[]): Run[] {
  const cells: (Run | undefined)[] = [];
  let column = 0;
  for (const [index, part] of [colours, ...parts].entries()) {
    // Behind the colours in front, each second part is a move.
    if (index > 0 && index % 2 === 0) column = moved(cells, column, part);
    else column = put(cells, column, paint(painter, part));
  }
  return joined(cells);
}

/** Does a move; the column after it. */
function moved(cells: (Run | undefined)[], column: number, move: string): number {
  const number = Number(/[0-9]+/.exec(move)?.[0] ?? '');
  const clamp = (to: number) => Math.min(MAX_COLUMNS, Math.max(0, to));
  switch (move.at(-1)) {
    case '\r':
      return 0;
    case '\b':
      return clamp(column - 1);
    case 'D':
      return clamp(column - Math.max(1, number));
    case 'C':
      return clamp(column + Math.max(1, number));
    case 'G':
      return clamp(number - 1);
    default:
      // K: what is behind (0), before (1), or all.
      if (number === 0) cells.length = Math.min(cells.length, column);
      else cells.fill(undefined, 0, number === 1 ? column + 1 : cells.length);
      return column;
  }
}

const CHARACTERS = new Intl.Segmenter();
/** What takes two columns. */
const WIDE =
  /^[\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}\p{Emoji_Presentation}\u3000-\u303e\uff01-\uff60]/u;

/** Writes text over what is there; the column behind it. */
function put(cells: (Run | undefined)[], from: number, runs: readonly Run[]): number {
  let column = from;
  for (const { text, style } of runs)
    for (const { segment } of CHARACTERS.segment(text)) {
      cells[column++] = { text: segment, style };
      // Its second column holds nothing of its own.
      if (WIDE.test(segment)) cells[column++] = { text: '', style };
    }
  return column;
}

/** Cells as runs; what nothing was written to is blank. */
function joined(cells: readonly (Run | undefined)[]): Run[] {
  const runs: { text: string; style: TextStyle | null }[] = [];
  for (const cell of Array.from(cells, (one) => one ?? { text: ' ', style: null })) {
    const last = runs.at(-1);
    if (last !== undefined && sameStyle(last.style, cell.style)) last.text += cell.text;
    else runs.push({ ...cell });
  }
  return runs;
}

const sameStyle = (a: TextStyle | null, b: TextStyle | null) => a === b || JSON.stringify(a) === JSON.stringify(b);

/** Decorations that hide nothing and do not move. */
const SHOWN = ['bold', 'dim', 'italic', 'underline', 'strikethrough'];

function styleOf(entry: Anser.AnserJsonEntry): TextStyle | null {
  const colour = colourOf(entry.fg, entry.fg_truecolor);
  const background = colourOf(entry.bg, entry.bg_truecolor);
  const decorations = entry.decorations.filter((name) => SHOWN.includes(name));
  if (colour === null && background === null && decorations.length === 0) return null;
  return { colour, background, decorations };
}

function colourOf(name: string | null, trueColour: string | null): string | null {
  if (name === 'ansi-truecolor') return trueColour === null ? null : `rgb(${trueColour})`;
  const [, number] = /^ansi-palette-([0-9]+)$/.exec(name ?? '') ?? [];
  return number === undefined ? name : paletteColour(Number(number));
}

/** Of the 256: a cube of 6 x 6 x 6 from 16 on, then 24 greys. */
function paletteColour(number: number): string {
  const level = (part: number) => (part === 0 ? 0 : 55 + 40 * part);
  const grey = 8 + 10 * (number - 232);
  const cube = [Math.floor((number - 16) / 36), Math.floor((number - 16) / 6) % 6, (number - 16) % 6].map(level);
  return `rgb(${(number >= 232 ? [grey, grey, grey] : cube).join(', ')})`;
}
