/** The keys of a pane. They work on the whole page, unless the reader types, and are those of the pane used last. */
import type { Opened } from './opened.ts';

interface PaneKey {
  /** As `KeyboardEvent.key` has them; the first ones are shown. */
  readonly keys: readonly string[];
  readonly words: string;
  readonly act: (opened: Opened, pane: HTMLElement) => unknown;
}

/** As docs/view.md lists them. */
export const PANE_KEYS: readonly PaneKey[] = [
  { keys: ['f'], words: 'follow, pause', act: ({ file }) => (file.following.value ? file.pause() : file.follow()) },
  { keys: ['g', 'Home'], words: 'to the beginning', act: ({ file }) => file.jumpTo(0) },
  { keys: ['G'], words: 'to the end', act: ({ file }) => file.jumpToEnd() },
  { keys: ['End'], words: 'to the end, and follow', act: ({ file }) => file.follow() },
  { keys: ['l'], words: 'to a line', act: (_, pane) => focusOn(pane, '.goto') },
  { keys: ['/'], words: 'search; in the list of jobs: filter', act: openSearch },
  { keys: ['n'], words: 'the next match', act: (opened) => opened.step(false) },
  { keys: ['N'], words: 'the previous match', act: (opened) => opened.step(true) },
  { keys: ['e'], words: 'the next line that looks like an error', act: (opened) => opened.stepErrors(false) },
  { keys: ['E'], words: 'the previous one', act: (opened) => opened.stepErrors(true) },
  { keys: ['W'], words: 'the next line that names itself a warning', act: (opened) => opened.stepWarnings() },
  { keys: ['w'], words: 'wrap lines', act: ({ wraps }) => toggle(wraps) },
  { keys: ['t'], words: 'fold tracebacks, or open them', act: ({ foldsTracebacks }) => toggle(foldsTracebacks) },
  { keys: ['p'], words: 'plot the numbers', act: (opened) => opened.togglePlot() },
  { keys: ['c'], words: 'copy the selected lines, or the screen, as text', act: (opened) => opened.copy() },
];

function toggle(signal: { value: boolean }): void {
  signal.value = !signal.value;
}

export function focusOn(pane: HTMLElement | null, part: '.search-bar input' | '.goto' | '.rows'): void {
  const element = pane?.querySelector<HTMLElement>(part);
  element?.focus({ preventScroll: true });
  // What was typed before gives way to what is typed now.
  if (element instanceof HTMLInputElement) element.select();
}

export function openSearch(opened: Opened, pane: HTMLElement | null): void {
  opened.isSearching.value = true;
  focusOn(pane, '.search-bar input');
}

/** Where a key types, or belongs to a list of its own. */
const OWN_KEYS = 'input:not([type="checkbox"], [type="range"]), select, textarea, dialog';

/** Whether a key is for the page, and not for a field or a combination of the browser. */
export function isLoose({ target, ctrlKey, metaKey, altKey }: KeyboardEvent): boolean {
  return !ctrlKey && !metaKey && !altKey && target instanceof Element && target.closest(OWN_KEYS) === null;
}

let lastUsed: HTMLElement | undefined;

/** The pane that a key is for: the one around it, the one used last, or the first one. */
function paneOf(target: EventTarget | null): Element | null {
  const around = target instanceof Element ? target.closest('.pane') : null;
  return around ?? (lastUsed?.isConnected === true ? lastUsed : document.querySelector('.pane'));
}

/** Connects the keys of the page with a pane. What is returned ends that. */
export function takeKeys(pane: HTMLElement, opened: Opened): () => void {
  const use = () => {
    lastUsed = pane;
  };
  const onKey = (event: KeyboardEvent) => {
    if (!isLoose(event) || paneOf(event.target) !== pane) return;
    const key = PANE_KEYS.find(({ keys }) => keys.includes(event.key));
    if (key === undefined) return;
    use();
    event.preventDefault();
    void key.act(opened, pane);
  };
  const over = new AbortController();
  const { signal } = over;
  pane.addEventListener('focusin', use, { signal });
  for (const event of ['pointerdown', 'wheel', 'touchstart'])
    pane.addEventListener(event, use, { signal, passive: true, capture: true });
  document.addEventListener('keydown', onKey, { signal });
  return () => over.abort();
}
