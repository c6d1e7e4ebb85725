/** What the files of the middleware and of its peers hold: lines of text that can be reported from each other. */

/** Of every line, its end included. */
export const LINE_BYTES = 100;
const LINES = 5_000;

const lines = Array.from({ length: LINES }, (_, line) => {
  const text = `step ${line}: residual ${(1 / (line + 1)).toExponential(6)}, `;
  return `${text.padEnd(LINE_BYTES - 1, `${line} and on `)}\n`;
}).join('');

/** The bytes [start, end) of a file that goes on for ever; it comes around after half a megabyte. */
export function textOf(start: number, end: number): string {
  let text = '';
  for (let at = start; at < end; ) {
    const from = at % lines.length;
    const piece = lines.slice(from, Math.min(lines.length, from + end - at));
    text += piece;
    at += piece.length;
  }
  return text;
}
