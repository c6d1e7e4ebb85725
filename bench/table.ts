/** Rows as one table in Markdown that also reads well on a terminal. */
import type { Row, Unmeasured } from './rounds.ts';

/** @param quick that sizes are small: these show that it works, and nothing else, so that no goal counts */
export function tableOf(title: string, rows: readonly (Row | Unmeasured)[], quick: boolean): string {
  const head = ['what', title, 'goal', 'met'];
  const lines = rows.map((row) =>
    'why' in row
      ? [row.what, `not measured: ${row.why}`, '', '']
      : [row.what, figuresOf(row), goalOf(row), quick ? '(quick)' : row.met ? 'yes' : 'no'],
  );
  const widths = head.map((title, column) =>
    Math.max(...[head, ...lines].map((line) => (line[column] ?? title).length)),
  );
  const lineOf = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  return [lineOf(head), `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`, ...lines.map(lineOf)].join('\n');
}

/** Ours, by the peer's, and the ratio, with the spread of several rounds: `1.60 s / 1.47 s = 1.09 (1.02 to 1.11)`. */
function figuresOf({ figure, ours, peer, ratio, spread: [least, most] }: Row): string {
  const inWords = (value: number) => (ratio === undefined ? withUnit(figure, value) : value.toFixed(2));
  const spread = least === most ? '' : ` (${inWords(least)} to ${inWords(most)})`;
  if (peer === undefined || ratio === undefined) return `${withUnit(figure, ours)}${spread}`;
  return `${withUnit(figure, ours)} / ${withUnit(figure, peer)} = ${ratio.toFixed(2)}${spread}`;
}

const goalOf = ({ figure, ratio, atMost }: Row) => (ratio === undefined ? withUnit(figure, atMost) : String(atMost));

/** The unit is the end of the figure's name. */
function withUnit(figure: string, value: number): string {
  if (/seconds$/i.test(figure)) return `${digitsOf(value)} s`;
  if (/bytes$/i.test(figure)) return `${digitsOf(value / 1e6)} MB`;
  if (/Ms$/.test(figure)) return `${digitsOf(value)} ms`;
  if (/Share$/.test(figure)) return `${digitsOf(value * 100)} %`;
  return digitsOf(value);
}

/** Three digits that count; all of a larger integer. */
const digitsOf = (value: number) => (Math.abs(value) < 1000 ? value.toPrecision(3) : value.toFixed(0));
