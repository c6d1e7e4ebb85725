/** Text of a job as a terminal may show it: its colours pass, whatever moves the cursor or hides text does not. */
import pc from 'picocolors';
import stringWidth from 'string-width';

const ESC = '\u001b';
const BEL = '\u0007';
const RESET = `${ESC}[0m`;

/** A colour (SGR), as the first group; any other escape sequence, complete or not; a character that is not shown. */
const NOT_TEXT = new RegExp(
  [
    `(${ESC}\\[[0-9;:]*m)`,
    `${ESC}\\[[0-?]*[ -/]*[@-~]?`,
    `${ESC}[\\]PX^_][^${BEL}${ESC}]*(?:${BEL}|${ESC}\\\\)?`,
    `${ESC}[ -/]*[0-~]?`,
    // Controls, and what turns the direction of the text around it.
    '[\\p{Cc}\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069]',
  ].join('|'),
  'gu',
);

/** One line without anything that breaks a terminal; colours stay where the terminal wants them. */
export function terminalText(line: string, colours = pc.isColorSupported): string {
  const text = line
    .replaceAll('\t', '  ')
    .replaceAll(NOT_TEXT, (_, colour?: string) => (colours ? (colour ?? '') : ''));
  return text.includes(ESC) ? `${text}${RESET}` : text;
}

const COLOUR = new RegExp(`(${ESC}\\[[0-9;:]*m)`);
const CHARACTERS = new Intl.Segmenter();

/** The text, cut to so many columns; an ellipsis stands where something was cut. */
export function cutToColumns(text: string, mostColumns: number): string {
  if (stringWidth(text) <= mostColumns) return text;
  const parts = text.split(COLOUR).flatMap((part, index) =>
    // Every second one is a colour.
    index % 2 === 1 ? [part] : Array.from(CHARACTERS.segment(part), ({ segment }) => segment),
  );
  let columns = 0;
  const end = parts.findIndex((part) => {
    columns += stringWidth(part);
    return columns >= mostColumns;
  });
  const shown = parts.slice(0, end).join('');
  return `${shown}${shown.includes(ESC) ? RESET : ''}…`;
}

/**
 * The text as lines of so many columns, broken between words; all are indented as the first one. Not by wrap-ansi, which
 * composes characters: the name of a file would no longer be the one on the disk.
 */
export function wrapToColumns(text: string, mostColumns: number): string[] {
  if (stringWidth(text) <= mostColumns) return [text];
  const [indent = ''] = /^ */.exec(text) ?? [];
  const lines: string[] = [];
  let line = '';
  for (const word of text.trimStart().split(' ')) {
    const longer = line === '' ? `${indent}${word}` : `${line} ${word}`;
    if (line !== '' && stringWidth(longer) > mostColumns) {
      lines.push(line);
      line = `${indent}${word}`;
    } else line = longer;
  }
  return [...lines, line];
}
