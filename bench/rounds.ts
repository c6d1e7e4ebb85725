/** Runs the sides of a measurement in turn and holds the medians of their figures against the goals. */
import type { Figures, Goal, Prepared } from './measurement.ts';

/** The figures of a side, one item a round. */
export type Runs = Readonly<Record<string, readonly Figures[]>>;

/** One row of the table. */
export interface Row {
  readonly measurement: string;
  readonly what: string;
  readonly figure: string;
  /** Median of our side; of the largest for a flat goal. */
  readonly ours: number;
  /** Median of the other side; of the smallest for a flat goal; absent for a limit. */
  readonly peer?: number;
  readonly ratio?: number;
  readonly atMost: number;
  readonly met: boolean;
}

/** A goal that could not be measured, and why. */
export interface Unmeasured {
  readonly measurement: string;
  readonly what: string;
  readonly why: string;
}

export async function runRounds(
  { sides, before }: Prepared,
  rounds: number,
  say: (text: string) => void,
): Promise<Runs> {
  const names = Object.keys(sides);
  const runs = Object.fromEntries(names.map((name): [string, Figures[]] => [name, []]));
  for (let round = 1; round <= rounds; round += 1) {
    for (const [name, run] of Object.entries(sides)) {
      await before?.();
      const figures = await run();
      runs[name]?.push(figures);
      say(`round ${round} of ${rounds}, ${name}: ${describe(figures)}`);
    }
  }
  return runs;
}

/** @throws Error if a goal names a side or figure that no run had */
export function rowOf(measurement: string, goal: Goal, runs: Runs): Row {
  const { what, figure, atMost } = goal;
  const of = (side: string) => medianOf(figure, side, runs);
  const row = { measurement, what, figure, atMost };
  if (goal.kind === 'limit') {
    const ours = of(goal.ours);
    return { ...row, ours, met: ours <= atMost };
  }
  const [ours, peer] =
    goal.kind === 'ratio'
      ? [of(goal.ours), of(goal.peer)]
      : [Math.max(...goal.sides.map(of)), Math.min(...goal.sides.map(of))];
  const ratio = ours / peer;
  return { ...row, ours, peer, ratio, met: ratio <= atMost };
}

function medianOf(figure: string, side: string, runs: Runs): number {
  const values = (runs[side] ?? []).map((figures) => figures[figure]).filter((value) => value !== undefined);
  if (values.length === 0) throw new Error(`the side "${side}" has no figure "${figure}"`);
  return median(values);
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

function describe(figures: Figures): string {
  return Object.entries(figures)
    .map(([name, value]) => `${name} ${Number.isInteger(value) ? value : value.toFixed(3)}`)
    .join(', ');
}
