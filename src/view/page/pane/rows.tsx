/** The rows of a file on the screen, and what scrolling requests. */
import { effect } from '@preact/signals';
import type { Virtualizer } from '@tanstack/virtual-core';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { OpenFile } from '../file/open-file.ts';
import { forgetSizes, MAX_BYTES } from '../file/text-window.ts';
import { SCROLLED_BY_KEYS, useVirtual } from '../parts/hooks.ts';
import { decode, plainLine } from '../text/terminal.ts';
import { counted } from '../text/units.ts';
import { highlight, reveal } from './marks.ts';
import type { Opened } from './opened.ts';
import { coloursBefore, PaneRow } from './row.tsx';
import { copySelected } from './selected-text.ts';

const ROW_PX = 20;
/** What is nearer to an end of what is here is fetched before it is seen. */
const SOON_PX = 3_000;
/** Up to so many bytes, the page takes more at both ends without giving up any. */
const ROOM_BYTES = MAX_BYTES / 2;
/** A move of the reader that leads to the end means: follow. */
const INTENT_MS = 700;

export function Rows({ opened, label }: { opened: Opened; label: string }) {
  const { file, selection } = opened;
  const search = opened.isSearching.value ? opened.search : undefined;
  const scroller = useRef<HTMLDivElement>(null);
  void file.changes.value;
  void search?.found.value;
  const { window } = file;
  const { rows } = window;
  const list = useVirtual({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    getItemKey: (index) => rows[index]?.start ?? -1,
    anchorTo: 'end',
    followOnAppend: file.following.value,
    scrollEndThreshold: 4,
    overscan: 12,
  });
  const aim: Aim = useRef(undefined);
  useTarget(file, list, aim);
  useIntent(file, list, scroller, aim);
  const items = list.getVirtualItems();
  const found = search?.current.value;
  const foundRow = found && window.rowAt(found[0]);
  const selected = selection.value;
  useLayoutEffect(() => {
    const [first, last] = visible(list);
    see(opened, rows[first]?.start ?? window.start, rows[last + 1]?.start ?? window.end);
    // Whatever moved the end away: rows that came, a plot above them, another width.
    if (file.following.peek() && !list.isAtEnd(1)) list.scrollToEnd();
    forgetSizes(list.itemSizeCache, window);
    // Rows that came before it move the place that is shown.
    const aimed = aim.current;
    if (aimed !== undefined && aimed.start !== window.start) {
      aim.current = { ...aimed, start: window.start };
      list.scrollToIndex(window.rowAt(aimed.byte), { align: 'center' });
    }
    if (aimed !== undefined) revealByte(scroller.current, opened, aimed.byte);
    // A pane that is not filled does not scroll.
    fetchSoon(file, list, scroller.current);
    return highlight(scroller.current, (index) => rows[index] && search?.needleIn(rows[index]));
  });
  return (
    <div
      class={`rows ${opened.wraps.value ? 'wraps' : ''}`}
      ref={scroller}
      role="log"
      aria-live="off"
      aria-label={label}
      onCopy={copySelected}
      {...SCROLLED_BY_KEYS}
    >
      <div class="rows-all" style={{ height: `${list.getTotalSize()}px` }}>
        <div class="rows-shown" style={{ transform: `translateY(${items[0]?.start ?? 0}px)` }}>
          {items.map(({ index, key }) => {
            const row = rows[index];
            if (row === undefined) return null;
            return (
              <div key={key} data-index={index} ref={list.measureElement}>
                <PaneRow
                  row={row}
                  coloursBefore={() => coloursBefore(rows, index)}
                  line={window.lineOf(index)}
                  folded={foldedText(window.foldedStates(index))}
                  isSelected={
                    selected !== undefined && row.start >= selected.from && window.lineStartOf(index) <= selected.to
                  }
                  isFound={index === foundRow}
                  onSelect={(at, isExtended) => opened.select(at, isExtended)}
                />
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

const foldedText = ({ states, hasMore }: ReturnType<OpenFile['window']['foldedStates']>) =>
  states === 0 ? '' : `${hasMore ? 'more than ' : ''}${counted(states, 'earlier state')}`;

/** Shows the place of a byte within its row, which may be wider or higher than the screen. */
function revealByte(scroller: HTMLElement | null, { file: { window } }: Opened, byte: number): void {
  const index = window.rowAt(byte);
  const row = window.rows[index];
  if (row === undefined) return;
  const before = decode(row.bytes.subarray(0, Math.max(0, byte - row.shownFrom)));
  reveal(scroller, index, plainLine(before).length);
}

function see({ seen }: Opened, from: number, to: number): void {
  if (from !== seen.value.from || to !== seen.value.to) seen.value = { from, to };
}

type List = Virtualizer<HTMLElement, HTMLElement>;
/** The byte that is shown until the reader moves, and where the window began then. */
type Aim = {
  current: { readonly byte: number; readonly start: number } | undefined;
};

/** The first and the last row that the reader sees. */
function visible(list: List): [number, number] {
  const { startIndex = 0, endIndex = 0 } = list.range ?? {};
  return [startIndex, endIndex];
}

/** Scrolls to where the file wants it, once the rows are there; the place stays there until the reader moves. */
function useTarget(file: OpenFile, list: List, aim: Aim): void {
  useEffect(
    () =>
      effect(() => {
        const target = file.target.value;
        if (target === undefined) return;
        // After the rows that came with it are drawn.
        requestAnimationFrame(() => {
          if (file.target.peek() === target) file.target.value = undefined;
          if (target === 'end') {
            aim.current = undefined;
            list.scrollToEnd();
            return;
          }
          aim.current = { byte: target.byte, start: file.window.start };
          list.scrollToIndex(file.window.rowAt(target.byte), { align: 'center' });
        });
      }),
    [file, list, aim],
  );
}

/** Fetches what will soon be seen, and gives up a quarter at the other end if the reader is far from it. */
function fetchSoon(file: OpenFile, list: List, element: HTMLElement | null): void {
  if (element === null || element.clientHeight === 0 || !file.isLoaded) return;
  const { window } = file;
  const hasRoom = window.shownBytes <= ROOM_BYTES;
  const hidden = list.getTotalSize() - element.clientHeight;
  const soon = hasRoom ? SOON_PX : Math.min(SOON_PX, hidden / 4);
  if (element.scrollTop < soon) file.wantBefore();
  if (list.getDistanceFromEnd() < soon) file.wantBehind();
}

/** Fetches what will soon be seen; scrolling back pauses, scrolling to the very end follows. */
function useIntent(file: OpenFile, list: List, scroller: { readonly current: HTMLElement | null }, aim: Aim): void {
  useEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    let intent = { isBack: false, at: 0 };
    const leave = () => {
      aim.current = undefined;
    };
    const intends = (isBack: boolean) => {
      leave();
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
    const onKeyDown = ({ key, shiftKey }: KeyboardEvent) => {
      if (['ArrowUp', 'PageUp'].includes(key) || (key === ' ' && shiftKey)) intends(true);
      else if (['ArrowDown', 'PageDown', ' '].includes(key)) intends(false);
    };
    const onScroll = () => {
      fetchSoon(file, list, element);
      const isAtVeryEnd = list.isAtEnd(4) && file.window.end >= file.condition.value.bytes;
      if (isAtVeryEnd && !intent.isBack && performance.now() - intent.at < INTENT_MS) file.reachEnd();
    };
    const over = new AbortController();
    const { signal } = over;
    const passive = { passive: true, signal };
    element.addEventListener('pointerdown', leave, passive);
    element.addEventListener('wheel', onWheel, passive);
    element.addEventListener('touchstart', onTouchStart, passive);
    element.addEventListener('touchmove', onTouchMove, passive);
    element.addEventListener('keydown', onKeyDown, { signal });
    element.addEventListener('scroll', onScroll, passive);
    return () => over.abort();
  }, [file, list, scroller, aim]);
}
