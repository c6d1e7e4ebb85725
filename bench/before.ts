/**
 * What a change costs: `npm run bench -- --before CHECKOUT`. This checkout and another one, whose benchmark is built there,
 * run each measurement by turns on this Node.js. A row is our side's figure here and there.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import type { Goal, Measurement } from './measurement.ts';
import { type Row, type Runs, rowOf, type Unmeasured } from './rounds.ts';
import { tableOf } from './table.ts';

/** A row is slower if it takes more than a tenth longer. */
const AT_MOST = 1.1;
const ROUNDS = 3;

/** The table, and whether a measurement failed. */
export async function compareWith(
  checkout: string,
  measurements: readonly Measurement[],
  { quick, rounds = ROUNDS }: { readonly quick: boolean; readonly rounds: number | undefined },
): Promise<{ table: string; failed: boolean }> {
  const programs = { before: path.resolve(checkout, 'dist-bench/bench/main.js'), now: process.argv[1] ?? '' };
  const rows: (Row | Unmeasured)[] = [];
  for (const measurement of measurements) {
    const runs: Record<string, Runs[string]> = {};
    for (let round = 0; round < rounds; round += 1) {
      for (const [title, program] of Object.entries(programs)) {
        for (const [side, figures] of Object.entries(await runOnce(program, measurement.name, quick))) {
          runs[`${title}: ${side}`] = [...(runs[`${title}: ${side}`] ?? []), ...figures];
        }
      }
    }
    rows.push(...rowsOf(measurement, runs));
  }
  const table = `${tableOf('now / before', rows, quick)}\n`;
  return { table, failed: rows.some((row) => 'why' in row) };
}

async function runOnce(program: string, name: string, quick: boolean): Promise<Runs> {
  const args = [program, '--json', '--only', name, '--rounds', '1', ...(quick ? ['--quick'] : [])];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [printed] = await Promise.all([text(child.stdout), once(child, 'close')]);
  const report = JSON.parse(printed || '{}') as { measurements?: Readonly<Record<string, { readonly runs: Runs }>> };
  return report.measurements?.[name]?.runs ?? {};
}

/** Goals that share a side and a figure are one row. */
function rowsOf({ name, goals }: Measurement, runs: Runs): (Row | Unmeasured)[] {
  const compared = new Map<string, Goal>();
  for (const goal of goals) {
    const name = `${goal.ours} ${goal.figure}`;
    if (!compared.has(name)) compared.set(name, goal);
  }
  return [...compared.values()].map(({ what, figure, ours }) => {
    try {
      const sides = { ours: `now: ${ours}`, peer: `before: ${ours}` };
      return rowOf(name, { kind: 'ratio', what, figure, ...sides, atMost: AT_MOST }, runs);
    } catch (error) {
      return { measurement: name, what, why: error instanceof Error ? error.message : String(error) };
    }
  });
}
