/** Rows of numbers as curves: what they are drawn over, and as text. */

const MIN_RISING_ROWS = 3;
/** The index of the first column that rises with each row, as a step does; 0, which counts rows, if none does. */
export function risingColumn(columns: readonly (readonly (number | null)[])[]): number {
  const found = columns.findIndex(
    (column, index) =>
      index > 0 &&
      column.length >= MIN_RISING_ROWS &&
      column.every((value, row) => value !== null && (row === 0 || value > (column[row - 1] ?? value))),
  );
  return Math.max(0, found);
}

/** A number as it stands at an axis: with what distinguishes it, and short however small or large it is. */
export function numberText(value: number): string {
  const size = Math.abs(value);
  if (value === 0 || (size >= 1e-3 && size < 1e7)) return String(Number(value.toPrecision(6)));
  return String(Number(value.toPrecision(4)));
}
