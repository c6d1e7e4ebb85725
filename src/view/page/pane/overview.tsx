import { bytes } from '../text/units.ts';
import type { Opened } from './opened.ts';

/** The scroll bar of a content of any size: what is on the screen as a place in all bytes. */
export function Overview({ opened: { file, seen } }: { opened: Opened }) {
  const { bytes: total } = file.condition.value;
  const { from, to } = seen.value;
  return (
    <input
      class="overview"
      type="range"
      aria-label="Place in the file"
      aria-orientation="vertical"
      aria-valuetext={`${bytes(from)} of ${bytes(total)}`}
      max={Math.max(0, total - (to - from))}
      step="any"
      value={from}
      onInput={(event) => file.jumpTo(Math.round(event.currentTarget.valueAsNumber))}
    />
  );
}
