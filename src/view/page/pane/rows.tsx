/** The rows of a file that are on the screen, and what scrolling asks for. */
import { effect, useSignal } from '@preact/signals';
import type { Virtualizer } from '@tanstack/virtual-core';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { OpenFile } from '../file/open-file.ts';
import type { Search } from '../file/search.ts';
import { useVirtual } from '../parts/use-virtual.ts';
import { highlight } from './highlight.ts';
import type { Opened } from './opened.ts';
import { Row } from './row.tsx';
import { forgetSizes } from './row-sizes.ts';

const ROW_PX = 20;
/** What is nearer to an end of what is here is fetched before it is seen. */
const SOON_PX = 3_000;
/** How far back colours are looked for that are still on. */
const COLOURS_BYTES = 4_096;
/** A move of the reader that leads to the end means: follow. */
const INTENT_MS = 700;

export interface RowsProps {
  readonly opened: Opened;
  readonly label: string;
  /** The byte of the match that is shown. */
  readonly found: number | undefined;
  /** What is looked for; undefined if nothing is. */
  readonly search: Search | undefined;
}

export function Rows({ opened, label, found, search }: RowsProps) {
  const { file, selection } = opened;
  const scroller = useRef<HTMLDivElement>(null);
  const unfolded = useSignal<ReadonlySet<number>>(new Set());
  void file.changes.value;
  void search?.found.value;
  const { window } = file;
  const list = useVirtual({
    count: window.rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    getItemKey: (index) => window.rows[index] ?? -1,
    anchorTo: 'end',
    followOnAppend: file.following.value,
    scrollEndThreshold: 4,
    overscan: 12,
  });
  useTarget(file, list);
  useIntent(file, list, scroller);
  const items = list.getVirtualItems();
  const foundRow = found === undefined ? undefined : window.rowAt(found);
  const { from: selectedFrom = 1, to: selectedTo = 0 } = selection.value ?? {};
  useLayoutEffect(() => {
    const [first, last] = visible(list);
    see(opened, window.rows[first] ?? window.start, window.rows[last + 1] ?? window.end);
    // Whatever moved the end away: rows that came, a plot above them, another width.
    if (file.following.peek() && !list.isAtEnd(1)) list.scrollToEnd();
    forgetSizes(list.itemSizeCache, window);
    return highlight(scroller.current, (index) => search?.needleIn(window.bytesOf(index), window.rows[index] ?? 0));
  });
  return (
    <div
      class={`rows ${opened.wraps.value ? 'wraps' : ''}`}
      ref={scroller}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keys
      tabIndex={0}
      role="log"
      aria-live="off"
      aria-label={label}
    >
      <div class="rows-all" style={{ height: `${list.getTotalSize()}px` }}>
        <div class="rows-shown" style={{ transform: `translateY(${items[0]?.start ?? 0}px)` }}>
          {items.map(({ index, key }) => {
            const start = window.rows[index] ?? 0;
            return (
              <div key={key} data-index={index} ref={list.measureElement}>
                <Row
                  start={start}
                  era={window.era}
                  bytes={window.bytesOf(index)}
                  before={window.bytesBefore(index, COLOURS_BYTES)}
                  line={window.lineOf(index)}
                  isSelected={start >= selectedFrom && start <= selectedTo}
                  isFound={index === foundRow}
                  isUnfolded={unfolded.value.has(start)}
                  onSelect={(at, isExtended) => opened.select(at, isExtended)}
                  onUnfold={(at) => {
                    unfolded.value = new Set(unfolded.value).add(at);
                  }}
                />
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

function see({ seen }: Opened, from: number, to: number): void {
  if (from !== seen.value.from || to !== seen.value.to) seen.value = { from, to };
}

type List = Virtualizer<HTMLElement, HTMLElement>;

/** The first and the last row that the reader sees. */
function visible(list: List): [number, number] {
  const { startIndex = 0, endIndex = 0 } = list.range ?? {};
  return [startIndex, endIndex];
}

/** Scrolls to where the file wants it, once the rows are there. */
function useTarget(file: OpenFile, list: List): void {
  useEffect(
    () =>
      effect(() => {
        const target = file.target.value;
        if (target === undefined) return;
        // After the rows that came with it are drawn.
        requestAnimationFrame(() => {
          if (file.target.peek() === target) file.target.value = undefined;
          if (target === 'end') list.scrollToEnd();
          else list.scrollToIndex(file.window.rowAt(target.byte), { align: 'center' });
        });
      }),
    [file, list],
  );
}

/** Fetches what will soon be seen; scrolling back pauses, scrolling to the very end follows. */
function useIntent(file: OpenFile, list: List, scroller: { readonly current: HTMLElement | null }): void {
  useEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    let intent = { isBack: false, at: 0 };
    const intends = (isBack: boolean) => {
      intent = { isBack, at: performance.now() };
      if (isBack && element.scrollHeight > element.clientHeight) file.pause();
    };
    const onWheel = (event: WheelEvent) => {
      if (event.deltaY !== 0 && !event.ctrlKey) intends(event.deltaY < 0);
    };
    let touchY = 0;
    const onTouchStart = (event: TouchEvent) => {
      touchY = event.touches[0]?.clientY ?? 0;
    };
    const onTouchMove = (event: TouchEvent) => {
      const y = event.touches[0]?.clientY ?? 0;
      if (Math.abs(y - touchY) > 4) intends(y > touchY);
      touchY = y;
    };
    const onKeyDown = ({ key }: KeyboardEvent) => {
      if (['ArrowUp', 'PageUp'].includes(key)) intends(true);
      if (['ArrowDown', 'PageDown', ' '].includes(key)) intends(false);
    };
    const onScroll = () => {
      const isNearEnd = list.getDistanceFromEnd() < SOON_PX;
      if (element.scrollTop < SOON_PX) file.wantBefore();
      if (isNearEnd) file.wantBehind();
      const isAtVeryEnd = list.isAtEnd(4) && file.window.end >= file.standing.value.bytes;
      if (isAtVeryEnd && !intent.isBack && performance.now() - intent.at < INTENT_MS) file.following.value = true;
    };
    const passive = { passive: true };
    element.addEventListener('wheel', onWheel, passive);
    element.addEventListener('touchstart', onTouchStart, passive);
    element.addEventListener('touchmove', onTouchMove, passive);
    element.addEventListener('keydown', onKeyDown);
    element.addEventListener('scroll', onScroll, passive);
    return () => {
      element.removeEventListener('wheel', onWheel);
      element.removeEventListener('touchstart', onTouchStart);
      element.removeEventListener('touchmove', onTouchMove);
      element.removeEventListener('keydown', onKeyDown);
      element.removeEventListener('scroll', onScroll);
    };
  }, [file, list, scroller]);
}
