/** One opened content: its rows, and all that can be done with them. */
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { ContentQuery } from '../../contract/addresses.ts';
import type { OpenFile, Opening } from '../file/open-file.ts';
import { focusOn, onPaneKey, openSearch, takeLooseKeys } from './keys.ts';
import { Notices } from './notices.tsx';
import { Opened } from './opened.ts';
import { Overview } from './overview.tsx';
import { PlotPanel } from './plot-panel.tsx';
import { Rows } from './rows.tsx';
import { SearchBar } from './search-bar.tsx';
import { Toolbar } from './toolbar.tsx';

export interface PaneProps {
  /** Without a version; two panes of the same content have different keys. */
  readonly content: ContentQuery;
  readonly opening: Opening;
  readonly label: string;
  /** What is announced of the content goes to the file, until the answer is called. */
  readonly watch?: (file: OpenFile) => () => void;
  readonly onSelect?: (byte: number) => void;
  /** What stands before the buttons. */
  readonly title?: ComponentChildren;
  /** What stands above the rows. */
  readonly children?: ComponentChildren;
}

export function Pane({ content, opening, label, watch, onSelect, title, children }: PaneProps) {
  // The key of a pane is what it shows: its properties stay as they are.
  const opened = useMemo(() => new Opened(content, opening), []);
  const { file, search, selection } = opened;
  const element = useRef<HTMLElement>(null);
  useEffect(() => opened.start(), [opened]);
  useEffect(() => {
    const pane = element.current;
    if (pane === null) return;
    // The reader scrolls by keys at once, unless the focus is elsewhere.
    if (document.activeElement === document.body) focusOn(pane, '.rows');
    return takeLooseKeys(pane, opened);
  }, [opened]);
  useEffect(() => watch?.(file), [file, watch]);
  useEffect(
    () => selection.subscribe((chosen) => chosen !== undefined && onSelect?.(chosen.from)),
    [selection, onSelect],
  );
  const { bytes } = file.standing.value;
  return (
    <section
      class="pane"
      ref={element}
      aria-label={label}
      onKeyDown={(event) => onPaneKey(event, opened, element.current)}
    >
      <Toolbar
        opened={opened}
        title={title}
        isWatched={opening.isWatched}
        onSearch={() => openSearch(opened, element.current)}
        onGone={() => focusOn(element.current, '.rows')}
      />
      {children}
      {opened.isSearching.value && (
        <SearchBar
          search={search}
          near={() => opened.seen.value.from}
          onStep={(isBack) => void opened.step(isBack)}
          onClose={() => {
            opened.closeSearch();
            focusOn(element.current, '.rows');
          }}
        />
      )}
      {opened.kinds.value !== undefined && (
        <PlotPanel
          content={opened.content}
          kinds={opened.kinds.value}
          bytes={bytes}
          onClose={() => opened.togglePlot()}
        />
      )}
      <Notices file={file} />
      <Content opened={opened} label={label} />
    </section>
  );
}

/** The rows, and the scroll bar of all bytes beside them. */
function Content({ opened, label }: { opened: Opened; label: string }) {
  const { file, search, seen, isSearching } = opened;
  return (
    <div class="content">
      <Rows
        opened={opened}
        label={label}
        found={isSearching.value ? search.current.value?.byte : undefined}
        search={isSearching.value ? search : undefined}
      />
      <Overview
        total={file.standing.value.bytes}
        from={seen.value.from}
        to={seen.value.to}
        marks={isSearching.value ? (search.found.value?.marks ?? []) : []}
        onJump={(byte) => file.jumpTo(byte)}
      />
    </div>
  );
}
