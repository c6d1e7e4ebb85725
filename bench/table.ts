/** The rows of all releases as one table in Markdown that also reads well on a terminal. */
import type { Row, Unmeasured } from './rounds.ts';

type Cell = Row | Unmeasured;

/** The rows of one release of Node.js. */
export interface Column {
  readonly title: string;
  readonly rows: readonly Cell[];
}

/**
 * A line for each row of the first column; the other columns have the same rows.
 *
 * @param quick that sizes are small: these show that it works, and nothing else, so that no goal counts
 */
export function tableOf(columns: readonly Column[], quick: boolean): string {
  const head = ['what', ...columns.map(({ title }) => title), 'goal', 'met'];
  const lines = (columns[0]?.rows ?? []).map(({ what }, index) => {
    const cells = columns.flatMap(({ rows }) => rows[index] ?? []);
    return [what, ...cells.map(figuresOf), goalOf(cells), quick ? '(quick)' : metOf(cells)];
  });
  const widths = head.map((title, column) =>
    Math.max(...[head, ...lines].map((line) => (line[column] ?? title).length)),
  );
  const lineOf = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  return [lineOf(head), `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`, ...lines.map(lineOf)].join('\n');
}

/** Ours, by the peer's, and the ratio: `1.60 s / 1.47 s = 1.09`. */
function figuresOf(cell: Cell): string {
  if ('why' in cell) return `not measured: ${cell.why}`;
  const { figure, ours, peer, ratio } = cell;
  if (peer === undefined || ratio === undefined) return withUnit(figure, ours);
  return `${withUnit(figure, ours)} / ${withUnit(figure, peer)} = ${ratio.toFixed(2)}`;
}

function goalOf(cells: readonly Cell[]): string {
  const row = cells.find((cell) => 'atMost' in cell);
  if (row === undefined) return '';
  return row.ratio === undefined ? withUnit(row.figure, row.atMost) : String(row.atMost);
}

/** By release, where those that measured it differ. */
function metOf(cells: readonly Cell[]): string {
  const met = cells.flatMap((cell) => ('why' in cell ? [] : cell.met ? 'yes' : 'no'));
  return new Set(met).size === 1 ? (met[0] ?? '') : met.join(', ');
}

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
