/** One opened content: its rows, and all that can be done with them. */
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { ContentQuery } from '../../contract/addresses.ts';
import type { OpenFile, Opening } from '../file/open-file.ts';
import { Icon } from '../parts/button.tsx';
import { Failure } from '../parts/words.tsx';
import { bytes } from '../text/units.ts';
import { focusOn, openSearch, takeKeys } from './keys.ts';
import { Opened } from './opened.ts';
import { PlotPanel } from './plot-panel.tsx';
import { Rows } from './rows.tsx';
import { SearchBar } from './search-bar.tsx';
import { Toolbar } from './toolbar.tsx';

interface PaneProps {
  /** Without a version; two panes of the same content have different keys. */
  readonly content: ContentQuery;
  readonly opening: Opening;
  readonly label: string;
  /** Bytes may still be appended. */
  readonly canGrow?: boolean;
  /** What is announced of the content goes to the file, until the answer is called. */
  readonly watch?: (file: OpenFile) => () => void;
  readonly onSelect?: (from: number, to: number, version: string) => void;
  readonly title?: ComponentChildren;
  readonly children?: ComponentChildren;
}

export function Pane({ content, opening, label, canGrow = false, watch, onSelect, title, children }: PaneProps) {
  // The key of a pane is what it shows: its properties stay as they are.
  const opened = useMemo(() => new Opened(content, opening), []);
  const { file, selection } = opened;
  const element = useRef<HTMLElement>(null);
  useEffect(() => opened.start(), [opened]);
  useEffect(() => {
    const pane = element.current;
    if (pane === null) return;
    // The reader scrolls the first pane by keys at once, whichever is ready first, unless the focus is elsewhere.
    if (document.activeElement === document.body) focusOn(document.querySelector('.pane'), '.rows');
    return takeKeys(pane, opened);
  }, [opened]);
  useEffect(() => watch?.(file), [file, watch]);
  useEffect(
    () =>
      selection.subscribe((chosen) => {
        const { version } = opened.content();
        // The selection of a link is there before its bytes, and is in the address.
        if (chosen !== undefined && version !== undefined) onSelect?.(chosen.from, chosen.to, version);
      }),
    [opened, onSelect],
  );
  const { bytes } = file.condition.value;
  return (
    <section class="pane" ref={element} aria-label={label}>
      <Toolbar
        opened={opened}
        title={title}
        canGrow={canGrow}
        onSearch={() => openSearch(opened, element.current)}
        onGone={() => focusOn(element.current, '.rows')}
      />
      {children}
      {opened.isSearching.value && (
        <SearchBar
          opened={opened}
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
          onLine={(byte) => opened.showLine(byte)}
          onClose={() => opened.togglePlot()}
        />
      )}
      <Notices file={file} />
      <div class="content">
        <Rows opened={opened} label={label} />
        <Overview opened={opened} />
      </div>
    </section>
  );
}

/** A notice about the rows below: outdated, more arrived, failed. */
function Notices({ file }: { file: OpenFile }) {
  void file.changes.value;
  const { problem, bytes: total } = file.condition.value;
  const { isFormer } = file;
  const followedTo = file.followedTo.value;
  const came = total - followedTo;
  return (
    <>
      {problem !== undefined && <Failure error={problem} />}
      {isFormer && (
        <p class="notice">
          The file was rewritten; this is what it was before.
          <button type="button" class="button" onClick={() => file.follow()}>
            Show what it is now
          </button>
        </p>
      )}
      {file.isLoaded && total === 0 && !isFormer && <p class="notice plain">Empty so far.</p>}
      {!file.following.value && !isFormer && followedTo > 0 && came > 0 && (
        <button type="button" class="more" onClick={() => file.follow()}>
          <Icon name="end" /> {bytes(came)} new
        </button>
      )}
    </>
  );
}

/** The scroll bar of a content of any size: what is on the screen as a place in all bytes. */
function Overview({ opened: { file, seen } }: { opened: Opened }) {
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
