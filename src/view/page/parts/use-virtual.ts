/** A list that renders only the rows on the screen. */
import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
  type VirtualizerOptions,
} from '@tanstack/virtual-core';
import { useLayoutEffect, useReducer, useState } from 'preact/hooks';

type Chosen = 'count' | 'getScrollElement' | 'estimateSize';
type Options = Pick<VirtualizerOptions<HTMLElement, HTMLElement>, Chosen> &
  Partial<VirtualizerOptions<HTMLElement, HTMLElement>>;

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
