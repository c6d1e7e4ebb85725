/** How far something is, as a bar, and the scroll bar that keys use. */
import { useSignal } from '@preact/signals';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';

/** How far something is, from 0 to 1. */
export const ProgressBar = ({ done, label }: { done: number; label: string }) => (
  <progress aria-label={label} value={done} />
);

/** What the focus is on in a region that scrolls and has nothing else for it: the browser scrolls the region by keys. */
export function ScrollKeys({ label }: { label: string }) {
  const element = useRef<HTMLSpanElement>(null);
  const percent = useSignal(0);
  const id = useId();
  useLayoutEffect(() => {
    const region = element.current?.parentElement;
    if (region == null) return;
    region.id = id;
    const onScroll = () => {
      const all = region.scrollHeight - region.clientHeight;
      percent.value = all > 0 ? Math.round((region.scrollTop / all) * 100) : 0;
    };
    region.addEventListener('scroll', onScroll, { passive: true });
    return () => region.removeEventListener('scroll', onScroll);
  }, [id, percent]);
  return (
    <span
      class="scroll-keys"
      ref={element}
      role="scrollbar"
      tabIndex={0}
      aria-label={`Scroll: ${label}`}
      aria-controls={id}
      aria-orientation="vertical"
      aria-valuenow={percent.value}
    />
  );
}
