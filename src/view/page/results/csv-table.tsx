/** The first rows of a table of values that commas, semicolons or tabs divide. */
import { useSignal } from '@preact/signals';
import { printableLines } from '../../../printable.ts';
import type { ContentQuery } from '../../contract/addresses.ts';
import { askStretch, type Stretch } from '../api.ts';
import { useAnswer } from '../parts/hooks.ts';
import { column, type Sort, sorted } from '../parts/sort.ts';
import { Failure } from '../parts/words.tsx';
import { decode } from '../text/terminal.ts';
import { grouped } from '../text/units.ts';
import { csvRows, valuesOf } from '../text/values.ts';

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

/** A click on a head sorts by its column, the next one the other way. */
function Table({ rows: [head = [], ...body], isCut }: Beginning) {
  const sort = useSignal<Sort<string> | undefined>(undefined);
  const columns = head.slice(0, MAX_COLUMNS).map((label, index) => {
    const values = valuesOf(body, index);
    return { ...column(label, (row: number) => values[row] ?? null, false), isNumeric: values.some(Number.isFinite) };
  });
  const { by, isDown = false } = sort.value ?? {};
  const chosen = columns[Number(by)];
  const tie = (a: number, b: number) => a - b;
  const order = [...body.keys()];
  const shown = chosen === undefined ? order : sorted(order, chosen, { isDown, now: 0, tie });
  const kinds = columns.map(({ isNumeric }) => (isNumeric ? 'numeric' : ''));
  return (
    <section class="csv" aria-label="Table">
      <table>
        <thead>
          <tr>
            {columns.map(({ label }, index) => (
              <th
                key={index}
                class={kinds[index]}
                scope="col"
                aria-sort={by !== String(index) ? 'none' : isDown ? 'descending' : 'ascending'}
              >
                <button
                  type="button"
                  class="sort"
                  onClick={() => (sort.value = { by: String(index), isDown: by === String(index) && !isDown })}
                >
                  {printableLines(label)}
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((at) => (
            <tr key={at}>
              {body[at]?.slice(0, MAX_COLUMNS).map((cell, index) => (
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
