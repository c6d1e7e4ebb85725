/** A notebook as text: its cells in order, with what they printed. Nothing of it runs, and no markup of it is used. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { printableLines } from '../../../printable.ts';
import type { ContentQuery } from '../../contract/addresses.ts';
import { askBytes } from '../api.ts';
import { ScrollKeys } from '../parts/bar.tsx';
import { Failure } from '../parts/words.tsx';
import { cellsOf, MAX_NOTEBOOK_BYTES, type NotebookCell } from '../text/notebook.ts';
import { decode, plainText } from '../text/terminal.ts';

export function Notebook({ content, bytes }: { content: ContentQuery; bytes: number }) {
  const cells = useSignal<readonly NotebookCell[] | undefined>(undefined);
  const problem = useSignal<string | undefined>(undefined);
  useEffect(() => {
    const stopped = new AbortController();
    if (bytes > MAX_NOTEBOOK_BYTES) problem.value = 'it is too large to be shown as a notebook';
    else
      askBytes(content, [0, Math.max(1, bytes)], stopped.signal)
        .then((all) => {
          cells.value = cellsOf(decode(all));
          if (cells.value === undefined) problem.value = 'it is not a notebook';
        })
        .catch((error: Error) => {
          problem.value = error.message;
        });
    return () => stopped.abort();
  }, [content, bytes, cells, problem]);
  if (problem.value !== undefined) return <Failure error={{ message: problem.value, hint: 'choose "as text"' }} />;
  return (
    <section class="notebook" aria-label="Notebook">
      <ScrollKeys label="notebook" />
      {cells.value?.map(({ label, source, outputs }, index) => (
        <article key={index} class="cell">
          <span class="fine">{label}</span>
          <pre>
            <bdi>{printableLines(source)}</bdi>
          </pre>
          {outputs.map((text, at) => (
            <pre key={at} class="output">
              <bdi>{printableLines(plainText(new TextEncoder().encode(text)))}</bdi>
            </pre>
          ))}
        </article>
      ))}
      {cells.value?.length === 0 && <p class="empty">The notebook has no cells.</p>}
    </section>
  );
}
