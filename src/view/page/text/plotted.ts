/** Rows of numbers as curves: what they are drawn over, smoothed, and as text. */
type Column = readonly (number | null)[];

/** Rows that a column needs to count as one that rises. */
const MIN_RISING_ROWS = 3;
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

/** A number as it stands at an axis: with what distinguishes it, and short however small or large it is. */
export function numberText(value: number): string {
  const size = Math.abs(value);
  if (value === 0 || (size >= 1e-3 && size < 1e7)) return String(Number(value.toPrecision(6)));
  return String(Number(value.toPrecision(4)));
}
