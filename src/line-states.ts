/** What a line shows on a terminal: the states that a progress bar separates with CR, without colours. */

const ESC = '\u001b';
const BEL = '\u0007';
/** A complete escape sequence, or the beginning of one. */
const ESCAPE = new RegExp(
  [`${ESC}\\[[0-?]*[ -/]*[@-~]?`, `${ESC}[\\]PX^_][^${BEL}${ESC}]*(?:${BEL}|${ESC}\\\\)`, `${ESC}[ -/]*[0-~]?`].join(
    '|',
  ),
  'g',
);

export const withoutColours = (text: string) => (text.includes(ESC) ? text.replaceAll(ESCAPE, '') : text);

/** Pieces of a long state overlap by so much, so that no word is cut. */
const OVERLAP = 256;

/** The states of a line, in their order; a longer state in several pieces. */
export function statesOf(line: string, maxCharacters = Number.POSITIVE_INFINITY): string[] {
  if (line.length <= maxCharacters && !line.includes('\r')) return [line];
  const states = line.split('\r').filter((state) => state !== '');
  return states.length === 0 ? [''] : states.flatMap((state) => piecesOf(state, maxCharacters));
}

function piecesOf(state: string, maxCharacters: number): string[] {
  const pieces = [state.slice(0, maxCharacters)];
  for (let at = maxCharacters; at < state.length; at += maxCharacters - OVERLAP)
    pieces.push(state.slice(at - OVERLAP, at - OVERLAP + maxCharacters));
  return pieces;
}
