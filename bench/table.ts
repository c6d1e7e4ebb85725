/** The rows as a table in Markdown that also reads well on a terminal. */
import type { Row, Unmeasured } from './rounds.ts';

const HEAD = ['what', 'ours', 'peer', 'ratio', 'goal', 'met'];

export function tableOf(rows: readonly (Row | Unmeasured)[], quick: boolean): string {
  const lines = rows.map((row) =>
    'why' in row ? [row.what, '', '', '', '', `not measured: ${row.why}`] : cellsOf(row, quick),
  );
  const widths = HEAD.map((title, column) =>
    Math.max(...[HEAD, ...lines].map((line) => (line[column] ?? title).length)),
  );
  const lineOf = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  return [lineOf(HEAD), `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`, ...lines.map(lineOf)].join('\n');
}

function cellsOf(row: Row, quick: boolean): string[] {
  const { what, figure, ours, peer, ratio, atMost, met } = row;
  const goal = ratio === undefined ? `at most ${withUnit(figure, atMost)}` : `at most ${atMost}`;
  return [
    what,
    withUnit(figure, ours),
    peer === undefined ? '' : withUnit(figure, peer),
    ratio === undefined ? '' : ratio.toFixed(2),
    goal,
    // Small sizes show that it works, and nothing else.
    quick ? '(quick)' : met ? 'yes' : 'NO',
  ];
}

/** The unit is the end of the figure's name. */
function withUnit(figure: string, value: number): string {
  if (/seconds$/i.test(figure)) return `${value.toPrecision(3)} s`;
  if (/bytes$/i.test(figure)) return `${(value / 1e6).toPrecision(3)} MB`;
  if (/Ms$/.test(figure)) return `${value.toPrecision(3)} ms`;
  if (/Share$/.test(figure)) return `${(value * 100).toPrecision(3)} %`;
  return value.toPrecision(3);
}
