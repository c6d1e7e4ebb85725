/** A CSV file as a table. A click on a head sorts the rows. */
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { printable } from '../../../printable.ts';
import type { ContentQuery } from '../../contract/addresses.ts';
import { askBytes } from '../api.ts';
import { useAnswer } from '../parts/hooks.ts';
import { type Columns, column, type Sort, sorted } from '../parts/sort.ts';
import { Table } from '../parts/table.tsx';
import { Failure, Outside } from '../parts/words.tsx';
import { csvRows } from '../text/csv.ts';
import { decode } from '../text/terminal.ts';
import { counted, bytes as inUnits } from '../text/units.ts';

/** Of the table; the text has all. */
const MAX_BYTES = 1024 * 1024;
const MAX_COLUMNS = 200;

interface CsvRow {
  /** From 1. */
  readonly number: number;
  readonly cells: readonly string[];
}

function tableOf(beginning: Uint8Array, isWhole: boolean) {
  const text = decode(beginning);
  // The last line may be cut.
  const [heads = [], ...lines] = csvRows(isWhole ? text : text.slice(0, text.lastIndexOf('\n') + 1));
  const rows = lines.map((cells, index): CsvRow => ({ number: index + 1, cells }));
  const columns: Columns<string, CsvRow> = Object.fromEntries(
    heads.slice(0, MAX_COLUMNS).map((head, index) => {
      const cellOf = ({ cells }: CsvRow) => cells[index]?.trim() ?? '';
      const isNumber = rows.every((row) => Number.isFinite(Number(cellOf(row))));
      const value = (row: CsvRow) => (cellOf(row) === '' ? null : isNumber ? Number(cellOf(row)) : cellOf(row));
      return [index, column(printable(head), value, false)];
    }),
  );
  return { columns, rows };
}

interface CsvProps {
  readonly content: ContentQuery;
  readonly bytes: number;
  readonly onText: () => void;
}

export function Csv({ content, bytes, onText }: CsvProps) {
  const { answer, problem } = useAnswer(() => askBytes(content, 0, MAX_BYTES), [content]);
  const isWhole = bytes <= MAX_BYTES;
  const { columns, rows } = useMemo(() => tableOf(answer ?? new Uint8Array(0), isWhole), [answer, isWhole]);
  /** As in the file, until a head is clicked. */
  const order = useSignal<Sort<string>>({ by: '', isDown: false });
  const { by, isDown } = order.value;
  const sorting = columns[by];
  const tie = (a: CsvRow, b: CsvRow) => a.number - b.number;
  const shown = useMemo(
    () => (sorting ? sorted(rows, sorting, { isDown, now: 0, tie }) : rows),
    [rows, sorting, isDown],
  );
  if (problem !== undefined) return <Failure error={problem} />;
  if (answer === undefined) return null;
  const names = Object.keys(columns);
  return (
    <>
      <p class="notice plain">
        {counted(rows.length, 'row')}
        {!isWhole && ` of the first ${inUnits(MAX_BYTES)}`}
        {names.length === MAX_COLUMNS && `, at most ${MAX_COLUMNS} columns`}
        <button type="button" class="button" onClick={onText}>
          Show as text
        </button>
      </p>
      <div class="csv" style={{ '--count': String(names.length) }}>
        <Table
          kind="csv"
          label="Rows"
          columns={columns}
          sort={order}
          rows={shown}
          keyOf={({ number }) => String(number)}
          cells={({ cells }) =>
            Object.fromEntries(names.map((name, index) => [name, <Outside text={cells[index] ?? ''} />]))
          }
        />
      </div>
    </>
  );
}
