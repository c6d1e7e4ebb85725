/** The first rows of a table of values that commas, semicolons or tabs divide. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { printable } from '../../../printable.ts';
import type { ContentQuery } from '../../contract.ts';
import { askStretch } from '../api.ts';
import { Failure } from '../parts/words.tsx';
import { csvRows } from '../text/csv.ts';
import { decode } from '../text/decode.ts';
import { grouped } from '../text/units.ts';

const BYTES = 128 * 1024;
const MOST_ROWS = 500;
const MOST_COLUMNS = 100;

export function CsvTable({ content }: { content: ContentQuery }) {
  const rows = useSignal<readonly (readonly string[])[] | undefined>(undefined);
  const isCut = useSignal(false);
  const problem = useSignal<Error | undefined>(undefined);
  useEffect(() => {
    const stopped = new AbortController();
    askStretch(content, { from: 0, bytes: BYTES }, stopped.signal)
      .then(({ bytes, total }) => {
        const all = csvRows(decode(bytes));
        rows.value = all.slice(0, MOST_ROWS);
        isCut.value = bytes.length < total || all.length > MOST_ROWS;
      })
      .catch((error: Error) => {
        problem.value = error;
      });
    return () => stopped.abort();
  }, [content, rows, isCut, problem]);
  if (problem.value !== undefined) return <Failure trouble={{ message: problem.value.message, hint: null }} />;
  const [head = [], ...body] = rows.value ?? [];
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keys
    <section class="csv" tabIndex={0} aria-label="Table">
      <table>
        <thead>
          <tr>
            {head.slice(0, MOST_COLUMNS).map((cell, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: the place is what a cell is
              <th key={index} scope="col">
                {printable(cell)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {body.map((row, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the place is what a row is
            <tr key={at}>
              {row.slice(0, MOST_COLUMNS).map((cell, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: the place is what a cell is
                <td key={index}>{printable(cell)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {isCut.value && <p class="fine">The first {grouped(body.length)} rows; all of it as text.</p>}
    </section>
  );
}
