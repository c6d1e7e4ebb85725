/** The rows of a search that shows only the lines with matches, and lines around each. */
import { effect } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { CONTEXT_LINES, LinesAround } from '../file/lines-around.ts';
import { useVirtual } from '../parts/hooks.ts';
import { plainText } from '../text/terminal.ts';
import { grouped } from '../text/units.ts';
import { highlight } from './marks.ts';
import type { Opened } from './opened.ts';
import { Row } from './row.tsx';
import { RowList } from './row-list.tsx';

const ROW_PX = 20;
const NONE = new Uint8Array(0);

/** One character stands for each byte. */
const bytesOf = (text: string) => Uint8Array.from(text, (character) => character.charCodeAt(0));

export function FilteredRows({ opened, label }: { opened: Opened; label: string }) {
  const { file, search } = opened;
  const following = file.following.value;
  const scroller = useRef<HTMLDivElement>(null);
  void search.found.value;
  const { matches } = search;
  const around = useMemo(() => new LinesAround(opened.content, matches), [opened, matches]);
  useEffect(() => () => around.stop(), [around]);
  void around.changes.value;
  const list = useVirtual({
    count: matches.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX * (1 + 2 * CONTEXT_LINES),
    getItemKey: (index) => matches[index]?.[0] ?? -1,
    anchorTo: 'end',
    followOnAppend: following,
    overscan: 4,
  });
  useEffect(
    () =>
      effect(() => {
        if (search.current.value === undefined) return;
        const { place } = search;
        // After the matches that came with it are drawn.
        if (place !== undefined) requestAnimationFrame(() => list.scrollToIndex(place, { align: 'center' }));
      }),
    [search, list, around],
  );
  useEffect(() => {
    if (following) list.scrollToEnd();
  }, [following, list]);
  const items = list.getVirtualItems();
  useEffect(() => {
    opened.filteredLines = () => {
      const { startIndex = 0, endIndex = -1 } = list.range ?? {};
      const shown = matches.slice(startIndex, endIndex + 1).flatMap((_, index) => around.of(startIndex + index)?.lines);
      return plainText(bytesOf(shown.map((line) => (line === undefined ? '' : `${line.text}\n`)).join('')));
    };
    return () => {
      opened.filteredLines = undefined;
    };
  }, [opened, list, matches, around]);
  const shownLines = new Map<number, Uint8Array>();
  useLayoutEffect(() => {
    around.want(items[0]?.index ?? 0, items.at(-1)?.index ?? -1);
    return highlight(scroller.current, (at) => search.needleIn(shownLines.get(at) ?? NONE, at));
  });
  const byte = search.current.value?.[0] ?? -1;
  return (
    <>
      <Limits opened={opened} />
      <RowList opened={opened} list={list} scroller={scroller} label={`${label}: lines with matches`} kind="filtered">
        {items.map(({ index, key }) => {
          const place = around.of(index);
          return (
            <div key={key} data-index={index} ref={list.measureElement} class={place?.isApart ? 'apart' : ''}>
              {place === undefined && <div class="row fine">…</div>}
              {place?.lines.map(({ at, text }, nth) => {
                const bytes = bytesOf(text);
                shownLines.set(at, bytes);
                return (
                  <div key={at} data-index={at}>
                    <Row
                      start={at}
                      era={0}
                      bytes={bytes}
                      before={NONE}
                      line={place.line === null ? undefined : place.line + nth}
                      isContinued={false}
                      shownFrom={at}
                      foldedStates={0}
                      isSelected={false}
                      isFound={byte >= at && byte <= at + bytes.length}
                      onSelect={(start) => opened.showLine(start)}
                    />
                  </div>
                );
              })}
            </div>
          );
        })}
      </RowList>
    </>
  );
}

/** Why not all lines are here, or none is. */
function Limits({ opened: { search } }: { opened: Opened }) {
  const { matches } = search;
  const found = search.found.value;
  if (found === undefined) return <p class="notice plain">Type what to look for: the lines with it are shown here.</p>;
  if (!found.isDone || found.count <= matches.length) return null;
  return <p class="notice plain">The first {grouped(matches.length)} matches are shown.</p>;
}
