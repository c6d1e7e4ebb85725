/** Runs the sides of a measurement in turn and holds the medians of their figures against the goals. */
import fs from 'node:fs';
import path from 'node:path';
import type { Figures, Goal, Prepared } from './measurement.ts';

/** The figures of a side, one item a round. */
export type Runs = Readonly<Record<string, readonly Figures[]>>;

/** One row of the table. */
export interface Row {
  readonly measurement: string;
  readonly what: string;
  readonly figure: string;
  /** Median of our side. */
  readonly ours: number;
  /** Median of the other side; absent for a limit. */
  readonly peer?: number;
  readonly ratio?: number;
  /** The least and the greatest of the rounds: of the ratio, or of our side. */
  readonly spread: readonly [number, number];
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
  const of = (side: string) => valuesOf(figure, side, runs);
  const row = { measurement, what, figure, atMost };
  const all = of(goal.ours);
  const ours = median(all);
  if (goal.kind === 'limit') return { ...row, ours, spread: spreadOf(all), met: ours <= atMost };
  const others = of(goal.peer);
  const peer = median(others);
  const ratio = ours / peer;
  const ratios = all.map((value, round) => value / (others[round] ?? peer));
  return { ...row, ours, peer, ratio, spread: spreadOf(ratios), met: ratio <= atMost };
}

function valuesOf(figure: string, side: string, runs: Runs): number[] {
  const values = (runs[side] ?? []).map((figures) => figures[figure]).filter((value) => value !== undefined);
  if (values.length === 0) throw new Error(`the side "${side}" has no figure "${figure}"`);
  return values;
}

const spreadOf = (values: readonly number[]): [number, number] => [Math.min(...values), Math.max(...values)];

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

const BLOCK = Buffer.alloc(1024 * 1024, 'x');

/**
 * Writes a file of so many bytes, flushes and removes it: what is free then was in use a moment ago. On a virtual
 * machine the first use of memory or of disk space can cost ten times as much as the next one, whoever it meets.
 */
export function warmDisk(directory: string, bytes: number): void {
  const file = path.join(directory, 'warm');
  const descriptor = fs.openSync(file, 'w');
  for (let written = 0; written < bytes; written += BLOCK.length) fs.writeSync(descriptor, BLOCK);
  fs.fsyncSync(descriptor);
  fs.closeSync(descriptor);
  fs.rmSync(file);
}
