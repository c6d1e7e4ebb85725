/** The heights of rows, by where they begin, as the virtual list remembers them. */

/** So many of rows that are gone may stay. */
const MOST_GONE = 2_000;

/** The list keeps what it ever measured: without this, a file that grows for a day would fill the memory of the page. */
export function forgetSizes(
  sizes: Map<number | string | bigint, number>,
  { start, end, rows }: { readonly start: number; readonly end: number; readonly rows: readonly number[] },
): void {
  if (sizes.size <= rows.length + MOST_GONE) return;
  for (const row of sizes.keys()) if (Number(row) < start || Number(row) >= end) sizes.delete(row);
}
