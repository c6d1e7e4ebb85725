/** The first rows of a table of values that commas, semicolons or tabs divide. */
import { useSignal } from '@preact/signals';
import { printableLines } from '../../../printable.ts';
import type { ContentQuery } from '../../contract/addresses.ts';
import { askStretch, type Stretch } from '../api.ts';
import { useAnswer } from '../parts/hooks.ts';
import { Failure } from '../parts/words.tsx';
import { decode } from '../text/terminal.ts';
import { grouped } from '../text/units.ts';
import { csvRows, isNumeric, sortedRows } from '../text/values.ts';

const BYTES = 128 * 1024;
const MAX_ROWS = 500;
const MAX_COLUMNS = 100;

interface Beginning {
  readonly rows: readonly (readonly string[])[];
  readonly isCut: boolean;
}

export function CsvTable({ content }: { content: ContentQuery }) {
  const ask = (signal: AbortSignal) => askStretch(content, { from: 0, bytes: BYTES }, signal).then(beginningOf);
  const { answer, problem } = useAnswer(ask, [content]);
  if (problem !== undefined) return <Failure error={{ message: problem.message, hint: null }} />;
  if (answer === undefined) return null;
  return <Table {...answer} />;
}

function beginningOf({ bytes, total }: Stretch): Beginning {
  const all = csvRows(decode(bytes));
  return {
    rows: all.slice(0, MAX_ROWS),
    isCut: bytes.length < total || all.length > MAX_ROWS,
  };
}

interface Order {
  readonly column: number;
  readonly isFalling: boolean;
}

/** A click on a head sorts by its column, the next one the other way, the third as in the file. */
function nextOrder(order: Order | undefined, column: number): Order | undefined {
  if (order?.column !== column) return { column, isFalling: false };
  return order.isFalling ? undefined : { column, isFalling: true };
}

function Table({ rows: [head = [], ...body], isCut }: Beginning) {
  const order = useSignal<Order | undefined>(undefined);
  const { column, isFalling = false } = order.value ?? {};
  const shown = column === undefined ? body : sortedRows(body, column, isFalling);
  const columns = head.slice(0, MAX_COLUMNS);
  const kinds = columns.map((_, index) => (isNumeric(body, index) ? 'numeric' : ''));
  return (
    <section class="csv" aria-label="Table">
      <table>
        <thead>
          <tr>
            {columns.map((cell, index) => (
              <th
                key={index}
                class={kinds[index]}
                scope="col"
                aria-sort={column !== index ? 'none' : isFalling ? 'descending' : 'ascending'}
              >
                <button type="button" class="sort" onClick={() => (order.value = nextOrder(order.value, index))}>
                  {printableLines(cell)}
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((row, at) => (
            <tr key={at}>
              {row.slice(0, MAX_COLUMNS).map((cell, index) => (
                <td key={index} class={kinds[index]}>
                  {printableLines(cell)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {isCut && (
        <p class="fine">Shown and sorted are the first {grouped(body.length)} rows; choose "as text" for all.</p>
      )}
    </section>
  );
}
