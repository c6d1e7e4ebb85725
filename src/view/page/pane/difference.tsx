/** The lines that differ between two contents, around the first byte that does. */
import { useSignal } from '@preact/signals';
import type { ContentQuery, LinesQuery } from '../../contract/addresses.ts';
import { askStretch, type Refused, type Stretch } from '../api.ts';
import { Check, IconButton } from '../parts/button.tsx';
import { useAnswer } from '../parts/hooks.ts';
import { Failure } from '../parts/words.tsx';
import { type DifferenceLine, lineDifference } from '../text/line-difference.ts';
import { pieces, plainText } from '../text/terminal.ts';
import { bytes, grouped } from '../text/units.ts';

/** Compared of each content, a quarter of it before the place. */
const COMPARED_BYTES = 64 * 1024;
const MAX_LINE_CHARACTERS = 2_000;
const MAX_SHOWN_LINES = 1_000;
/** Shown around lines that differ. */
const CONTEXT_LINES = 3;

/** Looked through for the first byte that differs. */
const MAX_SEARCHED_BYTES = 16 * 1024 * 1024;

interface Side {
  readonly name: string;
  readonly content: ContentQuery;
}

interface DifferenceProps {
  readonly before: Side;
  readonly after: Side;
  readonly onClose: () => void;
}

interface Compared {
  /** The first byte that differs. */
  readonly at: number;
  readonly old: readonly string[];
  readonly young: readonly string[];
  readonly isWhole: boolean;
}

/** `equal`: up to a number of bytes, or in all of them. */
type Found = Compared | { readonly equal: number | 'all' };

export function Difference({ before, after, onClose }: DifferenceProps) {
  const { answer, problem } = useAnswer((signal) => compared(before.content, after.content, signal), []);
  const ignoresNumbers = useSignal(false);
  return (
    <section class="difference" aria-label="Difference">
      <header>
        <span class="before">- {before.name}</span>
        <span class="after">+ {after.name}</span>
        <Check value={ignoresNumbers}>ignore numbers</Check>
        <IconButton icon="close" label="Close the difference" onClick={onClose} />
      </header>
      {problem !== undefined && (
        <Failure error={{ message: problem.message, hint: (problem as Refused).hint ?? null }} />
      )}
      {answer !== undefined && <Lines found={answer} ignoresNumbers={ignoresNumbers.value} />}
    </section>
  );
}

function Lines({ found, ignoresNumbers }: { found: Found; ignoresNumbers: boolean }) {
  if ('equal' in found)
    return (
      <p class="fine">{found.equal === 'all' ? 'No byte differs.' : `The first ${bytes(found.equal)} are equal.`}</p>
    );
  const { at, old, young, isWhole } = found;
  const lines = nearDifferences(lineDifference(old, young, ignoresNumbers ? withoutNumbers : undefined));
  return (
    <>
      {!isWhole && (
        <p class="fine">
          Only {bytes(COMPARED_BYTES)} around byte {grouped(at)}, the first one that differs, are compared.
        </p>
      )}
      {lines.slice(0, MAX_SHOWN_LINES).map(({ kind, text }, index) => (
        <Line key={index} kind={kind} text={text} />
      ))}
      {lines.length > MAX_SHOWN_LINES && <p class="fine">{lines.length - MAX_SHOWN_LINES} more lines are not shown.</p>}
      {lines.length === 0 && <p class="fine">No line differs.</p>}
    </>
  );
}

const withoutNumbers = (text: string) => text.replaceAll(/[0-9]+/g, '0');

async function compared(before: ContentQuery, after: ContentQuery, signal: AbortSignal): Promise<Found> {
  const both = (where: LinesQuery) => Promise.all([before, after].map((content) => askStretch(content, where, signal)));
  for (let at = 0; ; ) {
    if (at >= MAX_SEARCHED_BYTES) return { equal: at };
    const [old, young] = (await both({ at })) as [Stretch, Stretch];
    const length = Math.min(old.bytes.length, young.bytes.length);
    const differs = old.bytes.subarray(0, length).findIndex((byte, index) => byte !== young.bytes[index]);
    at += differs < 0 ? length : differs;
    if (differs < 0 && length > 0) continue;
    if (differs < 0 && old.total === young.total) return { equal: 'all' };
    const stretches = await both({ from: Math.max(0, at - COMPARED_BYTES / 4), bytes: COMPARED_BYTES });
    const [oldLines = [], youngLines = []] = stretches.map(linesOf);
    const isWhole = stretches.every(({ start, total, bytes: read }) => start === 0 && read.length === total);
    return { at, old: oldLines, young: youngLines, isWhole };
  }
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
