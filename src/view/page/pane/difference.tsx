/** The lines that differ between two contents, around one place. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { ContentQuery } from '../../contract/addresses.ts';
import { askStretch, type Refused, type Stretch } from '../api.ts';
import { Failure } from '../parts/words.tsx';
import { type DifferenceLine, lineDifference } from '../text/line-difference.ts';
import { pieces, plainText } from '../text/terminal.ts';
import { bytes } from '../text/units.ts';

/** Compared of each content, a quarter of it before the place. */
const COMPARED_BYTES = 64 * 1024;
const MAX_LINE_CHARACTERS = 2_000;
const MAX_SHOWN_LINES = 1_000;
/** Shown around lines that differ. */
const CONTEXT_LINES = 3;

interface DifferenceProps {
  readonly before: ContentQuery;
  readonly after: ContentQuery;
  readonly at: number;
}

interface Compared {
  readonly lines: readonly DifferenceLine[];
  readonly isWhole: boolean;
}

export function Difference({ before, after, at }: DifferenceProps) {
  const compared = useSignal<Compared | undefined>(undefined);
  const problem = useSignal<Refused | undefined>(undefined);
  useEffect(() => {
    const over = new AbortController();
    const where = { from: Math.max(0, at - COMPARED_BYTES / 4), bytes: COMPARED_BYTES };
    Promise.all([before, after].map((content) => askStretch(content, where, over.signal)))
      .then((stretches) => {
        const [old = [], young = []] = stretches.map(linesOf);
        const isWhole = stretches.every(({ start, total, bytes: read }) => start === 0 && read.length === total);
        compared.value = { lines: nearDifferences(lineDifference(old, young)), isWhole };
      })
      .catch((error: Refused) => {
        if (!over.signal.aborted) problem.value = error;
      });
    return () => over.abort();
  }, []);
  if (problem.value !== undefined)
    return <Failure error={{ message: problem.value.message, hint: problem.value.hint ?? null }} />;
  if (compared.value === undefined) return null;
  const { lines, isWhole } = compared.value;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keys
    <section class="difference" aria-label="Difference" tabIndex={0}>
      {!isWhole && <p class="fine">Only {bytes(COMPARED_BYTES)} around the place are compared.</p>}
      {lines.slice(0, MAX_SHOWN_LINES).map(({ kind, text }, index) => (
        <Line key={index} kind={kind} text={text} />
      ))}
      {lines.length > MAX_SHOWN_LINES && <p class="fine">{lines.length - MAX_SHOWN_LINES} more lines are not shown.</p>}
      {lines.length === 0 && <p class="fine">No line differs.</p>}
    </section>
  );
}

const SIGNS = { same: ' ', before: '-', after: '+' } as const;

function Line({ kind, text }: DifferenceLine) {
  return (
    <div class={`difference-line ${kind}`}>
      <span>{SIGNS[kind]}</span>
      <bdi>
        {pieces(text.slice(0, MAX_LINE_CHARACTERS)).map((piece, index) =>
          piece.means === undefined ? (
            piece.text
          ) : (
            <span key={index} class="mark">
              {piece.text}
            </span>
          ),
        )}
      </bdi>
    </div>
  );
}

/** As a terminal shows them; the last one may lack its end. */
function linesOf(stretch: Stretch): string[] {
  const text = plainText(stretch.bytes);
  return text === '' ? [] : text.replace(/\n$/, '').split('\n');
}

function nearDifferences(lines: readonly DifferenceLine[]): DifferenceLine[] {
  const isDifferent = ({ kind }: DifferenceLine) => kind !== 'same';
  return lines.filter((_, index) =>
    lines.slice(Math.max(0, index - CONTEXT_LINES), index + CONTEXT_LINES + 1).some(isDifferent),
  );
}
