/** Keys of a pane, where nobody types. */
import type { Opened } from './opened.ts';

/** Puts the focus on a part of the pane. */
export function focusOn(pane: HTMLElement | null, part: '.search-bar input' | '.goto' | '.rows'): void {
  const element = pane?.querySelector<HTMLElement>(part);
  element?.focus({ preventScroll: true });
  // What was typed before gives way to what is typed now.
  if (element instanceof HTMLInputElement) element.select();
}

/** The pane that the reader used last. */
let lastUsed: HTMLElement | undefined;

/** Keys pressed while nothing on the page has the focus go to the pane that was used last. What is returned ends that. */
export function takeLooseKeys(pane: HTMLElement, opened: Opened): () => void {
  const use = () => {
    lastUsed = pane;
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.target !== document.body || (lastUsed !== pane && lastUsed?.isConnected === true)) return;
    use();
    onPaneKey(event, opened, pane);
  };
  pane.addEventListener('focusin', use);
  pane.addEventListener('pointerdown', use);
  document.addEventListener('keydown', onKey);
  return () => {
    pane.removeEventListener('focusin', use);
    pane.removeEventListener('pointerdown', use);
    document.removeEventListener('keydown', onKey);
  };
}

export function onPaneKey(event: KeyboardEvent, opened: Opened, pane: HTMLElement | null): void {
  const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const { file } = opened;
  const actions: Readonly<Record<string, () => unknown>> = {
    '/': () => openSearch(opened, pane),
    c: () => opened.copy(),
    C: () => opened.copy(true),
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
