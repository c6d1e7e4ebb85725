import { useRef } from 'preact/hooks';
import { bytes } from '../text/units.ts';
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
