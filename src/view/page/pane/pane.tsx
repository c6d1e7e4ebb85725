/** One opened content: its rows, and all that can be done with them. */
import { useComputed, useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { ContentQuery } from '../../contract.ts';
import { address, askBytes, askPlace } from '../api.ts';
import { browserSource } from '../file/browser-source.ts';
import { OpenFile, type Opening } from '../file/open-file.ts';
import { Search } from '../file/search.ts';
import { decode } from '../text/decode.ts';
import { numberLines } from '../text/number-lines.ts';
import { counted } from '../text/units.ts';
import { needleOf } from './highlight.ts';
import { Notices } from './notices.tsx';
import { Overview } from './overview.tsx';
import { type Kind, PlotPanel } from './plot-panel.tsx';
import { Rows } from './rows.tsx';
import { SearchBar } from './search-bar.tsx';
import type { Selection } from './selection.ts';
import { Toolbar } from './toolbar.tsx';

/** Of chosen lines that are copied. */
const MOST_COPIED_BYTES = 16 * 1024 * 1024;
/** Rows that are looked through for lines of numbers. */
const NUMBER_ROWS = 500;

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
  const file = useMemo(() => new OpenFile(browserSource(content), opening), []);
  const now = useMemo(() => () => ({ ...content, ...versionOf(file) }), []);
  const search = useMemo(() => new Search(now), [now]);
  const isSearching = useSignal(false);
  const wraps = useSignal(true);
  const kinds = useSignal<readonly Kind[] | undefined>(undefined);
  const selection = useSignal<Selection | undefined>(undefined);
  const seen = useSignal({ from: 0, to: 0 });
  const element = useRef<HTMLElement>(null);
  const needle = useComputed(() => (isSearching.value ? needleOf(search.query.value) : undefined));
  useEffect(() => {
    const unwatch = watch?.(file);
    return () => {
      unwatch?.();
      search.stop();
      file.close();
    };
  }, [file, search, watch]);
  useEffect(
    () => selection.subscribe((chosen) => chosen !== undefined && onSelect?.(chosen.from)),
    [selection, onSelect],
  );

  const step = async (isBack: boolean) => {
    const byte = await search.step(isBack, seen.value.from).catch(() => undefined);
    if (byte !== undefined) file.jumpTo(byte);
  };
  useEffect(() => search.current.subscribe((match) => match !== undefined && file.jumpTo(match.byte)), [search, file]);
  const actions = {
    onSearch: () => {
      isSearching.value = true;
      element.current?.querySelector<HTMLElement>('.search-bar input')?.focus();
    },
    onPlot: () => {
      kinds.value = kinds.value === undefined ? kindsOf(file, selection.value?.from) : undefined;
    },
    onWrap: () => {
      wraps.value = !wraps.value;
    },
    onCopy: () => copy(now(), file, selection.value, seen.value),
    onLine: async (line: number) => {
      const place = await askPlace(now(), { line });
      file.jumpTo(place.byte);
      selection.value = { from: place.byte, to: place.byte, anchor: place.byte };
    },
  };
  const closeSearch = () => {
    search.stop();
    isSearching.value = false;
    element.current?.querySelector<HTMLElement>('.rows')?.focus();
  };
  const { bytes } = file.standing.value;
  const isSearched = search.found.value?.isDone === true;
  useEffect(() => {
    if (isSearched) search.grow(bytes);
  }, [search, bytes, isSearched]);
  return (
    <section
      class="pane"
      ref={element}
      aria-label={label}
      onKeyDown={(event) => onKey(event, { file, step, closeSearch, element: element.current, ...actions })}
    >
      <Toolbar
        {...actions}
        title={title}
        file={file}
        wraps={wraps.value}
        isWatched={opening.isWatched}
        downloads={address('raw', now())}
      />
      {children}
      {isSearching.value && (
        <SearchBar
          search={search}
          near={() => seen.value.from}
          onStep={(isBack) => void step(isBack)}
          onClose={closeSearch}
        />
      )}
      {kinds.value !== undefined && (
        <PlotPanel content={now} kinds={kinds.value} bytes={bytes} onClose={() => (kinds.value = undefined)} />
      )}
      <Notices file={file} />
      <div class="content">
        <Rows
          file={file}
          label={label}
          wraps={wraps.value}
          selection={selection}
          found={isSearching.value ? search.current.value?.byte : undefined}
          needle={needle.value}
          onSeen={(from, to) => {
            if (from !== seen.value.from || to !== seen.value.to) seen.value = { from, to };
          }}
        />
        <Overview
          total={bytes}
          from={seen.value.from}
          to={seen.value.to}
          marks={isSearching.value ? (search.found.value?.marks ?? []) : []}
          onJump={(byte) => file.jumpTo(byte)}
        />
      </div>
    </section>
  );
}

function versionOf(file: OpenFile): { version?: string } {
  const { version } = file.standing.value;
  return version === undefined ? {} : { version };
}

/** Lines of numbers among the rows that are here: those like a chosen one first. */
function kindsOf({ window }: OpenFile, chosen: number | undefined): Kind[] {
  const first = Math.max(0, (chosen === undefined ? window.rows.length : window.rowAt(chosen) + 1) - NUMBER_ROWS);
  const last = chosen === undefined ? window.rows.length : window.rowAt(chosen) + 1;
  const lines = Array.from({ length: last - first }, (_, index) => decode(window.bytesOf(first + index)));
  const kinds = numberLines(lines).map(({ words, index }) => ({ words, byte: window.rows[first + index] ?? 0 }));
  return chosen === undefined ? kinds : kinds.sort((a, b) => Number(b.byte === chosen) - Number(a.byte === chosen));
}

/** Copies the chosen lines, or what is on the screen; what is to be said of it. */
async function copy(
  content: ContentQuery,
  { window, standing }: OpenFile,
  chosen: Selection | undefined,
  seen: { from: number; to: number },
): Promise<string> {
  const from = chosen?.from ?? seen.from;
  const lastRow = chosen === undefined ? undefined : window.rows[window.rowAt(chosen.to) + 1];
  const to = chosen === undefined ? seen.to : (lastRow ?? Math.min(window.end, standing.value.bytes));
  if (to - from > MOST_COPIED_BYTES) return 'too much to copy: download it';
  try {
    const text = new TextDecoder().decode(await askBytes(content, [from, to]));
    await navigator.clipboard.writeText(text);
    return `${counted(text.trimEnd().split('\n').length, 'line')} copied`;
  } catch {
    return 'this browser does not let it copy';
  }
}

interface KeyActions {
  readonly file: OpenFile;
  readonly element: HTMLElement | null;
  readonly step: (isBack: boolean) => Promise<void>;
  readonly onSearch: () => void;
  readonly closeSearch: () => void;
  readonly onPlot: () => void;
  readonly onWrap: () => void;
  readonly onCopy: () => Promise<string>;
}

function onKey(event: KeyboardEvent, actions: KeyActions): void {
  const { file, element } = actions;
  const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const done: Record<string, () => unknown> = {
    '/': actions.onSearch,
    c: actions.onCopy,
    f: () => (file.following.value ? file.pause() : file.follow()),
    g: () => file.jumpTo(0),
    G: () => file.jumpToEnd(),
    Home: () => file.jumpTo(0),
    End: () => file.follow(),
    l: () => element?.querySelector<HTMLElement>('.goto')?.focus(),
    n: () => actions.step(false),
    N: () => actions.step(true),
    p: actions.onPlot,
    w: actions.onWrap,
  };
  const action = done[event.key];
  if (action === undefined) return;
  event.preventDefault();
  void action();
}
