/** How the demo ends: every file of both sides, and what is to be thought of it. */
import { pc } from '../../src/cli/show/terminal.ts';
import { EXIT } from '../../src/errors.ts';
import { countOf, showBytes } from '../../src/numbers.ts';
import type { Comparison } from './comparison.ts';
import { comparisonTable, differences, TABLE_NOTE } from './comparison-table.ts';
import type { Screen } from './screen.ts';

/** With `all`, every file has a row of its own. */
export function showComparison(screen: Screen, comparison: Comparison, all: boolean): void {
  screen.write(`${comparisonTable(comparison, { columns: screen.columns, all })}\n\n`);
  screen.line(pc.dim(TABLE_NOTE));
  for (const name of comparison.generations)
    screen.line(pc.dim(`Kept besides: ${name}, from before the job rewrote it.`));
}

/** The last line has the result. */
export function conclude(screen: Screen, comparison: Comparison, tookMs: number): void {
  const { files } = comparison;
  const different = differences(comparison);
  const bytes = files.reduce((total, file) => total + file.bytes, 0);
  const took = `${(tookMs / 1000).toFixed(1)} s`;
  screen.write('\n');
  for (const line of different) screen.write(`${pc.red(line)}\n`);
  if (different.length === 0) {
    screen.write(`${pc.green(pc.bold(`all ${files.length} files equal`))} (${showBytes(bytes)}), in ${took}\n`);
    return;
  }
  screen.write(`${pc.red(pc.bold(`${different.length} of ${countOf(files.length, 'file')} not equal`))}, in ${took}\n`);
  process.exitCode = EXIT.failed;
}
