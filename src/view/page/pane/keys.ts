/** Keys of a pane, where nobody types. */
import type { Opened } from './opened.ts';

/** Puts the focus on a part of the pane. */
export function focusOn(pane: HTMLElement | null, part: '.search-bar input' | '.goto' | '.rows'): void {
  pane?.querySelector<HTMLElement>(part)?.focus();
}

export function onPaneKey(event: KeyboardEvent, opened: Opened, pane: HTMLElement | null): void {
  const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const { file } = opened;
  const actions: Readonly<Record<string, () => unknown>> = {
    '/': () => openSearch(opened, pane),
    c: () => opened.copy(),
    f: () => (file.following.value ? file.pause() : file.follow()),
    g: () => file.jumpTo(0),
    G: () => file.jumpToEnd(),
    Home: () => file.jumpTo(0),
    End: () => file.follow(),
    l: () => focusOn(pane, '.goto'),
    n: () => opened.step(false),
    N: () => opened.step(true),
    p: () => opened.togglePlot(),
    w: () => {
      opened.wraps.value = !opened.wraps.value;
    },
  };
  const action = actions[event.key];
  if (action === undefined) return;
  event.preventDefault();
  void action();
}

export function openSearch(opened: Opened, pane: HTMLElement | null): void {
  opened.isSearching.value = true;
  focusOn(pane, '.search-bar input');
}
