/** All keys of the page: the help, the menu of a file and the one handler read this list. */
import { stepFiles, stepJobRows, stepPictures } from '../navigation.ts';
import type { Opened } from './opened.ts';

interface KeyBinding {
  /** As `KeyboardEvent.key` has them; the first ones are shown. */
  readonly keys: readonly string[];
  readonly words: string;
  /** On an opened file: the one around the focus, the one used last, or the first one. */
  readonly onFile?: ((opened: Opened, pane: HTMLElement) => unknown) | undefined;
  /** False: the key does nothing here, and is the browser's. */
  readonly onPage?: ((key: string) => unknown) | undefined;
  /** It is in the menu of a file, ticked while it is on. */
  readonly isInMenu?: true;
  readonly isOn?: (opened: Opened) => boolean;
}

const file = (
  keys: string,
  words: string,
  onFile: KeyBinding['onFile'],
  more: Partial<KeyBinding> = {},
): KeyBinding => ({
  keys: keys.split(' '),
  words,
  onFile,
  ...more,
});
const page = (keys: string, words: string, onPage: KeyBinding['onPage']): KeyBinding => ({
  keys: keys.split(' '),
  words,
  onPage,
});
const MENU = { isInMenu: true } as const;

export const KEYS: readonly KeyBinding[] = [
  file('f', 'follow, pause', ({ file }) => (file.following.value ? file.pause() : file.follow())),
  file('g Home', 'to the beginning', ({ file }) => file.jumpTo(0)),
  file('G', 'to the end', ({ file }) => file.jumpToEnd()),
  file('End', 'to the end, and follow', ({ file }) => file.follow()),
  file('l', 'to a line', (_, pane) => focusOn(pane, '.goto')),
  file('/', 'search; in the list of jobs: filter, then Enter', openSearch, { onPage: filterJobs }),
  file('n', 'the next match', (opened) => opened.step(false)),
  file('N', 'the previous match', (opened) => opened.step(true)),
  file('e', 'the next line that looks like an error', (opened) => opened.stepErrors(false)),
  file('E', 'the previous one', (opened) => opened.stepErrors(true)),
  file('w', 'wrap lines', ({ wraps }) => toggle(wraps), { ...MENU, isOn: ({ wraps }) => wraps.value }),
  file('p', 'plot the numbers', (opened) => opened.togglePlot(), { ...MENU, isOn: ({ kinds }) => kinds.value != null }),
  file('c', 'copy the selected lines, or the screen, as text', (opened) => opened.copy(), MENU),
  page('j k', 'in the list of jobs: down, up; Enter opens', (key) => stepJobRows(key === 'k')),
  page('] [', 'the next file of the job, the previous one', (key) => stepFiles(key === '[')),
  page('ArrowRight ArrowLeft', 'the next picture of the results, the previous one', (key) =>
    stepPictures(key === 'ArrowLeft'),
  ),
  page('?', 'this list', () => document.querySelector<HTMLDialogElement>('.key-list')?.showModal()),
];

function filterJobs(): void {
  focusOn(document.querySelector('.jobs-page'), 'input');
}

function toggle(signal: { value: boolean }): void {
  signal.value = !signal.value;
}

export function focusOn(area: HTMLElement | null, part: '.search-bar input' | '.goto' | '.rows' | 'input'): void {
  const element = area?.querySelector<HTMLElement>(part);
  element?.focus({ preventScroll: true });
  // What was typed before gives way to what is typed now.
  if (element instanceof HTMLInputElement) element.select();
}

export function openSearch(opened: Opened, pane: HTMLElement | null): void {
  opened.openSearch();
  focusOn(pane, '.search-bar input');
}

/** Where a key types, or belongs to a list of its own. */
const OWN_KEYS = 'input:not([type="checkbox"], [type="range"]), select, textarea, dialog';

/** Whether a key is for the page, and not for a field or a combination of the browser. */
function isLoose({ target, ctrlKey, metaKey, altKey }: KeyboardEvent): boolean {
  return !ctrlKey && !metaKey && !altKey && target instanceof Element && target.closest(OWN_KEYS) === null;
}

/** The opened file of each pane on the page. */
const panes = new Map<HTMLElement, Opened>();
let lastUsed: HTMLElement | null = null;

const paneAround = (target: EventTarget | null) =>
  target instanceof Element ? target.closest<HTMLElement>('.pane') : null;

/** Connects the keys of the page with a pane. What is returned ends that. */
export function takeKeys(pane: HTMLElement, opened: Opened): () => void {
  panes.set(pane, opened);
  return () => void panes.delete(pane);
}

/** The one handler of all keys. */
export function takeAllKeys(): void {
  const use = ({ target }: Event) => {
    lastUsed = paneAround(target) ?? lastUsed;
  };
  for (const type of ['focusin', 'pointerdown', 'wheel'])
    document.addEventListener(type, use, { passive: true, capture: true });
  document.addEventListener('keydown', (event) => {
    if (!isLoose(event)) return;
    const key = KEYS.find(({ keys }) => keys.includes(event.key));
    const used = lastUsed?.isConnected === true ? lastUsed : document.querySelector<HTMLElement>('.pane');
    const pane = paneAround(event.target) ?? used;
    const opened = pane === null ? undefined : panes.get(pane);
    if (key?.onFile !== undefined && pane !== null && opened !== undefined) {
      lastUsed = pane;
      void key.onFile(opened, pane);
    } else if (key?.onPage === undefined || key.onPage(event.key) === false) return;
    event.preventDefault();
  });
}
