/** What several components hook into: an answer of the server, and a list that renders only the rows on the screen. */
import { useSignal } from '@preact/signals';
import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
  type VirtualizerOptions,
} from '@tanstack/virtual-core';
import { useEffect, useLayoutEffect, useReducer, useState } from 'preact/hooks';

type Chosen = 'count' | 'getScrollElement' | 'estimateSize';
type Options = Pick<VirtualizerOptions<HTMLElement, HTMLElement>, Chosen> &
  Partial<VirtualizerOptions<HTMLElement, HTMLElement>>;

/** Of a region that scrolls and has nothing else for the focus: the browser scrolls it by keys. */
export const SCROLLED_BY_KEYS = { tabIndex: 0 };

/** The component draws `getVirtualItems()` within an element as high as `getTotalSize()`. */
export function useVirtual(options: Options): Virtualizer<HTMLElement, HTMLElement> {
  const [, redraw] = useReducer((times: number, _: undefined) => times + 1, 0);
  const whole = {
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    ...options,
    onChange: () => redraw(undefined),
  };
  const [virtualizer] = useState(() => new Virtualizer<HTMLElement, HTMLElement>(whole));
  virtualizer.setOptions(whole);
  useLayoutEffect(() => virtualizer._didMount(), [virtualizer]);
  useLayoutEffect(() => virtualizer._willUpdate());
  return virtualizer;
}

/** The last answer, and why there is none to the present question; asked anew when one of `of` changes. */
export function useAnswer<T>(ask: (signal: AbortSignal) => Promise<T>, of: readonly unknown[]) {
  const answer = useSignal<T | undefined>(undefined);
  const problem = useSignal<Error | undefined>(undefined);
  useEffect(() => {
    const over = new AbortController();
    ask(over.signal)
      .then((found) => {
        if (over.signal.aborted) return;
        answer.value = found;
        problem.value = undefined;
      })
      .catch((error: Error) => {
        if (!over.signal.aborted) problem.value = error;
      });
    return () => over.abort();
  }, of);
  return { answer: answer.value, problem: problem.value };
}
