/** What cannot be seen in a text, or would turn the text around it, as a mark that says what it is. */
import { undecodableByte } from './decode.ts';

export interface Piece {
  readonly text: string;
  /** What the text stands for, if it is a mark. */
  readonly means?: string;
}

/**
 * Controls (but tabs), line and paragraph separators, what turns the direction of what follows, byte-order marks, halves
 * of surrogate pairs, which here are undecodable bytes. Joiners and marks of direction that end by themselves stay.
 */
const UNSEEN = /[\p{Cc}\p{Cs}\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/u;
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
  const byte = undecodableByte(character);
  if (byte !== undefined) return { text: byte.toString(16).toUpperCase(), means: 'a byte that is no UTF-8' };
  const code = character.codePointAt(0) ?? 0;
  // There are pictures of the controls of ASCII.
  if (code < 0x20) return { text: String.fromCodePoint(0x2400 + code), means: `control character ${code}` };
  if (code === 0x7f) return { text: '\u2421', means: 'control character 127' };
  return { text: `U+${code.toString(16).toUpperCase().padStart(4, '0')}`, means: 'a character that cannot be seen' };
}
