/** A notebook as text: its cells in order, with what they printed. Nothing of it runs, and no markup of it is used. */
import { printableLines } from '../../../printable.ts';
import type { ContentQuery } from '../../contract/addresses.ts';
import { askBytes } from '../api.ts';
import { ScrollKeys } from '../parts/bar.tsx';
import { useAnswer } from '../parts/hooks.ts';
import { Failure } from '../parts/words.tsx';
import { cellsOf, MAX_NOTEBOOK_BYTES } from '../text/notebook.ts';
import { decode, plainText } from '../text/terminal.ts';

export function Notebook({ content, bytes }: { content: ContentQuery; bytes: number }) {
  const ask = async (signal: AbortSignal) => {
    if (bytes > MAX_NOTEBOOK_BYTES) throw new Error('it is too large to be shown as a notebook');
    const found = cellsOf(decode(await askBytes(content, [0, Math.max(1, bytes)], signal)));
    if (found === undefined) throw new Error('it is not a notebook');
    return found;
  };
  const { answer: cells, problem } = useAnswer(ask, [content, bytes]);
  if (problem !== undefined) return <Failure error={{ message: problem.message, hint: 'choose "as text"' }} />;
  return (
    <section class="notebook" aria-label="Notebook">
      <ScrollKeys label="notebook" />
      {cells?.map(({ label, source, outputs }, index) => (
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
      {cells?.length === 0 && <p class="empty">The notebook has no cells.</p>}
    </section>
  );
}
