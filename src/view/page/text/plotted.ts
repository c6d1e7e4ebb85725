/** Rows of numbers as curves: what they are drawn over, on which axes, smoothed, several contents together. */
type Column = readonly (number | null)[];

/** One content of a plot: its first column is what the curves are drawn over. */
export interface Table {
  /** What distinguishes its curves from those of other contents; '' for the only one. */
  readonly name: string;
  readonly columns: readonly Column[];
}

export interface Curves {
  readonly names: readonly string[];
  /** The first one is common to all curves. */
  readonly columns: readonly Column[];
}

/** Rows that a column needs to count as one that rises. */
const MIN_RISING_ROWS = 3;
/** Curves share an axis if the larger range is less than so many times the smaller one. */
const MAX_RANGE_RATIO = 20;
/** More axes leave no room for the curves. */
const MAX_AXES = 4;

/** The index of the first column that rises with each row, as a step does; 0, which counts rows, if none does. */
export function risingColumn(columns: readonly Column[]): number {
  const found = columns.findIndex(
    (column, index) =>
      index > 0 &&
      column.length >= MIN_RISING_ROWS &&
      column.every((value, row) => value !== null && (row === 0 || value > (column[row - 1] ?? value))),
  );
  return Math.max(0, found);
}

/**
 * An exponential moving average; `weight` (0 to 1) is that of the values before. Early values are not drawn to zero.
 */
export function smoothed(column: Column, weight: number): Column {
  if (weight === 0) return column;
  let [sum, total] = [0, 0];
  return column.map((value) => {
    if (value === null) return null;
    sum = weight * sum + (1 - weight) * value;
    total = weight * total + (1 - weight);
    return sum / total;
  });
}

/** The axis of each curve, from 0: curves of like ranges share one. */
export function axesOf(curves: readonly Column[]): number[] {
  const axes: number[] = [];
  return curves.map((curve) => {
    const range = rangeOf(curve);
    const same = axes.findIndex((other) => Math.max(other, range) <= MAX_RANGE_RATIO * Math.min(other, range));
    if (same >= 0) return same;
    if (axes.length < MAX_AXES) return axes.push(range) - 1;
    return axes.length - 1;
  });
}

/** The largest distance from zero; 1 for a curve of zeros alone. */
function rangeOf(curve: Column): number {
  let max = 0;
  for (const value of curve) max = Math.max(max, Math.abs(value ?? 0));
  return max === 0 ? 1 : max;
}

/** A number as it stands at an axis: with what distinguishes it, and short however small or large it is. */
export function numberText(value: number): string {
  const size = Math.abs(value);
  if (value === 0 || (size >= 1e-3 && size < 1e7)) return String(Number(value.toPrecision(6)));
  return String(Number(value.toPrecision(4)));
}

/** The curves of all contents over their common first column, from left to right; null where one has no value. */
export function joined(tables: readonly Table[], names: readonly string[]): Curves {
  const rows = new Map<number, (number | null)[]>();
  const [first = '', ...others] = names;
  let before = 0;
  for (const { columns } of tables) {
    const [x = [], ...curves] = columns;
    for (const [row, value] of x.entries()) {
      if (value === null) continue;
      const values = rows.get(value) ?? [];
      for (const [index, curve] of curves.entries()) values[before + index] = curve[row] ?? null;
      rows.set(value, values);
    }
    before += others.length;
  }
  const sorted = [...rows].sort(([a], [b]) => a - b);
  const curves = Array.from({ length: before }, (_, index) => sorted.map(([, values]) => values[index] ?? null));
  const labels = tables.flatMap(({ name }) => others.map((one) => (name === '' ? one : `${one} (${name})`)));
  return { names: [first, ...labels], columns: [sorted.map(([x]) => x), ...curves] };
}
