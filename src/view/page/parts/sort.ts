/** Rows of a table that a click on the head of a column sorts. */

/** Null comes last in both directions. */
type SortValue<Row> = (row: Row, now: number) => number | string | null;

export interface Column<Row> {
  readonly label: string;
  readonly value: SortValue<Row>;
  /** The direction of the first click: most people look for the newest, the longest, the largest. */
  readonly isDown: boolean;
}

export type Columns<Name extends string, Row> = Readonly<Record<Name, Column<Row>>>;

export interface Sort<Name extends string> {
  readonly by: Name;
  readonly isDown: boolean;
}

export const column = <Row>(label: string, value: SortValue<Row>, isDown = true): Column<Row> => ({
  label,
  value,
  isDown,
});

/** A click on the head of a column: another column, or the other direction. */
export const clicked = <Name extends string>(
  columns: Readonly<Record<Name, Pick<Column<never>, 'isDown'>>>,
  sort: Sort<Name>,
  by: Name,
): Sort<Name> => ({ by, isDown: sort.by === by ? !sort.isDown : columns[by].isDown });

/** `tie` orders equal rows, whatever the direction. */
export function sorted<Row>(
  rows: Iterable<Row>,
  { value }: Column<Row>,
  { isDown, now, tie }: { readonly isDown: boolean; readonly now: number; readonly tie: (a: Row, b: Row) => number },
): Row[] {
  const keyed = [...rows].map((row) => ({ row, key: value(row, now) }));
  return keyed
    .sort((a, b) => {
      if (a.key === b.key) return tie(a.row, b.row);
      if (a.key === null || b.key === null) return a.key === null ? 1 : -1;
      return a.key < b.key === isDown ? 1 : -1;
    })
    .map(({ row }) => row);
}
