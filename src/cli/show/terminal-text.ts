/** Text of a job as a terminal may show it: its colours pass, whatever moves the cursor or hides text does not. */
import pc from 'picocolors';

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

const WIDE = /[\p{Script=Han}\p{Script=Hangul}\p{Emoji_Presentation}\u3000-\u30ff\uff01-\uff60\uffe0-\uffe6]/u;
const WITHOUT_WIDTH = /[\p{Mn}\p{Me}\p{Cf}]/u;
const COLOUR_OR_CHARACTER = new RegExp(`${ESC}\\[[0-9;:]*m|.`, 'gsu');

/** Columns of a terminal that a text takes; where terminals differ (joined emoji), rather too many. */
export function columnsOf(text: string): number {
  let columns = 0;
  for (const [part] of text.matchAll(COLOUR_OR_CHARACTER)) columns += columnsOfPart(part);
  return columns;
}

/** The text, cut to so many columns; an ellipsis stands where something was cut. */
export function cutToColumns(text: string, mostColumns: number): string {
  if (columnsOf(text) <= mostColumns) return text;
  let shown = '';
  let columns = 0;
  for (const [part] of text.matchAll(COLOUR_OR_CHARACTER)) {
    columns += columnsOfPart(part);
    if (columns >= mostColumns) break;
    shown += part;
  }
  return `${shown}${shown.includes(ESC) ? RESET : ''}…`;
}

/** The text as lines of so many columns, broken between words; all are indented as the first one. */
export function wrapToColumns(text: string, mostColumns: number): string[] {
  if (columnsOf(text) <= mostColumns) return [text];
  const [indent = ''] = /^ */.exec(text) ?? [];
  const lines: string[] = [];
  let line = '';
  for (const word of text.trimStart().split(' ')) {
    const longer = line === '' ? `${indent}${word}` : `${line} ${word}`;
    if (line !== '' && columnsOf(longer) > mostColumns) {
      lines.push(line);
      line = `${indent}${word}`;
    } else line = longer;
  }
  return [...lines, line];
}

function columnsOfPart(part: string): number {
  if (part.startsWith(ESC) || WITHOUT_WIDTH.test(part)) return 0;
  return WIDE.test(part) ? 2 : 1;
}
