/** What stands beside the rows: the scroll bar of all bytes, and when they arrived. */
import { useRef } from 'preact/hooks';
import { arrivedWords, type Bin } from '../file/arrivals.ts';
import { bytes, counted } from '../text/units.ts';
import type { Opened } from './opened.ts';

/** Of the height, so that there is something to take hold of. */
const MIN_THUMB = 0.03;

/** The scroll bar of a content of any size: what is on the screen as a part of all bytes, and where matches are. */
export function Overview({ opened: { file, search, seen, isSearching } }: { opened: Opened }) {
  const { bytes: total } = file.condition.value;
  const { from, to } = seen.value;
  const marks = isSearching.value ? (search.found.value?.marks ?? []) : [];
  const bar = useRef<HTMLDivElement>(null);
  const height = Math.max(MIN_THUMB, total === 0 ? 1 : (to - from) / total);
  const free = Math.max(1, total - (to - from));
  const top = Math.min(1, from / free) * (1 - height);
  const jump = (event: PointerEvent) => {
    const box = bar.current?.getBoundingClientRect();
    if (box === undefined) return;
    const share = (event.clientY - box.top - (box.height * height) / 2) / (box.height * (1 - height) || 1);
    file.jumpTo(Math.round(Math.min(1, Math.max(0, share)) * free));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowUp: -0.01, ArrowDown: 0.01, PageUp: -0.1, PageDown: 0.1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    file.jumpTo(Math.round(Math.min(total, Math.max(0, from + step * total))));
  };
  const max = Math.max(1, ...marks);
  return (
    <div
      class="overview"
      ref={bar}
      role="slider"
      aria-orientation="vertical"
      tabIndex={0}
      aria-label="Place in the file"
      aria-valuemin={0}
      aria-valuemax={total}
      aria-valuenow={from}
      aria-valuetext={`${bytes(from)} of ${bytes(total)}`}
      onPointerDown={(event) => {
        bar.current?.setPointerCapture(event.pointerId);
        jump(event);
      }}
      onPointerMove={(event) => {
        if (bar.current?.hasPointerCapture(event.pointerId)) jump(event);
      }}
      onKeyDown={onKeyDown}
    >
      {marks.map((count, index) =>
        count === 0 ? null : (
          <span
            key={index}
            class="match"
            style={{ top: `${(index / marks.length) * 100}%`, opacity: 0.4 + (0.6 * count) / max }}
          />
        ),
      )}
      <span class="thumb" style={{ top: `${top * 100}%`, height: `${height * 100}%` }} />
    </div>
  );
}

const BINS = 64;

/** Lines over time, or bytes of a file without line ends, the oldest above: a click shows what arrived then. */
export function Histogram({ opened: { arrivals, file, seen } }: { opened: Opened }) {
  void arrivals.changes.value;
  const bins = arrivals.bins(BINS);
  const hasLines = bins.some(({ lines }) => lines > 0);
  const sizeOf = (bin: Bin) => (hasLines ? bin.lines : bin.bytes);
  const max = Math.max(...bins.map(sizeOf));
  const [first, last] = [bins[0], bins.at(-1)];
  if (first === undefined || last === undefined) return <div class="histogram" />;
  const { from, to } = seen.value;
  const onScreen = arrivals.of(from, to);
  const isSeen = (bin: Bin) => onScreen !== undefined && bin.from <= onScreen.to && bin.to >= onScreen.from;
  const now = Date.now();
  const words = (bin: Bin) =>
    `${counted(Math.round(bin.lines), 'line')}, ${bytes(Math.round(bin.bytes))} ${arrivedWords(bin, now)}`;
  const fullest = bins.find((bin) => sizeOf(bin) === max) ?? first;
  return (
    <div
      class="histogram"
      role="img"
      aria-label={`${hasLines ? 'Lines' : 'Bytes'} over time: all ${arrivedWords({ from: first.from, to: last.to }, now)}; most: ${words(fullest)}`}
    >
      {bins.map((bin) => (
        // A click is a short cut: the field "Go to" takes a time.
        <span
          key={bin.from}
          class={`bin ${isSeen(bin) ? 'seen' : ''}`}
          title={words(bin)}
          onPointerDown={() => Number.isFinite(bin.start) && file.jumpTo(bin.start)}
        >
          <span style={{ width: `${(sizeOf(bin) / max) * 100}%` }} />
        </span>
      ))}
    </div>
  );
}
