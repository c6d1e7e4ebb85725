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

/** The last state of a progress bar, which rewrites its line with CR or with backspaces. */
export function lastState(line: string): string {
  const state = withLastState(line).replaceAll('\r', '');
  if (!state.includes('\b')) return state;
  const shown: string[] = [];
  for (const character of withoutColours(state)) {
    if (character === '\b') shown.pop();
    else shown.push(character);
  }
  return shown.join('');
}

/** The same with a CR at its end, which a newline may follow. */
export function withLastState(line: string): string {
  let end = line.length;
  while (line[end - 1] === '\r') end--;
  return line.slice(end === 0 ? 0 : line.lastIndexOf('\r', end - 1) + 1);
}

const MOVE = new RegExp(`(\\n|${ESC}\\[\\d*[ABEF])`);

/**
 * The rows of a text whose program goes back to former lines (bars of rich, docker): each has all that was written into
 * it, separated by CR.
 */
export function rowsOf(text: string): string[] {
  const parts = text.split(MOVE);
  if (!text.includes(`${ESC}[`) || parts.every((part) => !part.startsWith(ESC))) return text.split('\n');
  const rows = [''];
  let row = 0;
  for (const [index, part] of parts.entries()) {
    if (index % 2 === 0) {
      rows[row] += rows[row] === '' ? part : `\r${part}`;
      continue;
    }
    const lines = part === '\n' ? 1 : Math.max(1, Number.parseInt(part.slice(2), 10) || 1);
    row = /[AF]$/.test(part) ? Math.max(0, row - lines) : Math.min(rows.length, row + lines);
    rows[row] ??= '';
  }
  return rows;
}

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
