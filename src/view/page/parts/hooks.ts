/** What several components hook into: an answer of the server, and a list that renders only the rows on the screen. */
import { useSignal } from '@preact/signals';
import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
  type VirtualizerOptions,
} from '@tanstack/virtual-core';
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from 'preact/hooks';
import { address, askJson, askLines, pause, type RefusedByView } from '../api.ts';
import { live } from '../live.ts';

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

/** An address with a pass, for a link or a frame, which send no header; undefined until it came. */
export function usePassed(to: string): string | undefined {
  const ask = () => askJson<{ address: string }>(address('pass', { to: to.slice('api/'.length) }));
  // A pass ends with the start of the server.
  const { answer } = useAnswer(ask, [to, live.connection.value]);
  return answer?.address.startsWith(`${to}&`) ? answer.address : undefined;
}

const RETRY_MS = 3_000;

/** The last answer, or why there is none. Requested anew, one at a time, when one of `of` changes, or it failed. */
export function useAnswer<T>(ask: () => Promise<T>, of: readonly unknown[]) {
  const answer = useSignal<T | undefined>(undefined);
  const problem = useSignal<Error | undefined>(undefined);
  const failures = useSignal(0);
  const before = useRef(Promise.resolve());
  useEffect(() => {
    const over = new AbortController();
    const { signal } = over;
    const asked = async () => {
      if (signal.aborted) return;
      try {
        answer.value = await ask();
        problem.value = undefined;
      } catch (error) {
        problem.value = error as Error;
        await pause(RETRY_MS, signal);
        if (!signal.aborted) failures.value++;
      }
    };
    before.current = before.current.then(asked);
    return () => over.abort();
  }, [...of, failures.value]);
  return { answer: answer.value, problem: problem.value };
}

/** How often what comes is shown, in milliseconds. */
const SHOW_MS = 150;

/**
 * What the lines of an answer make of `first` one after the other, so far, or why that failed. Nothing is requested
 * without an address; requested anew when one of `of` changes.
 */
export function useLines<Line, Answer>(
  to: string | undefined,
  first: Answer,
  next: (answer: Answer, line: Line) => Answer,
  of: readonly unknown[] = [],
) {
  const answer = useSignal(first);
  const problem = useSignal<Error | undefined>(undefined);
  useEffect(() => {
    problem.value = undefined;
    if (to === undefined) return;
    const stop = new AbortController();
    const read = async () => {
      let [came, shownAt] = [first, 0];
      for await (const line of askLines<Line>(to, stop.signal)) {
        came = next(came, line);
        problem.value = undefined;
        if (performance.now() - shownAt < SHOW_MS) continue;
        shownAt = performance.now();
        answer.value = came;
      }
      answer.value = came;
    };
    const failed = async (error: Error & Partial<RefusedByView>): Promise<void> => {
      if (stop.signal.aborted) return;
      problem.value = error;
      if (error.retryAfterMs === undefined) return;
      await pause(error.retryAfterMs, stop.signal);
      if (!stop.signal.aborted) await read().catch(failed);
    };
    read().catch(failed);
    return () => stop.abort();
  }, [to, ...of]);
  return { answer: answer.value, problem: problem.value };
}
