/** Which file of the page a key acts on, and what it does. */
import { Window } from 'happy-dom';
import { expect, it, onTestFinished } from 'vitest';
import { stubPage } from '../../../support/view-models.ts';

// Imported by name: the page has types of its own, which the compiler checks elsewhere.
const KEYS = '../../../../src/view/page/pane/keys.ts';

interface Keys {
  takeAllKeys(): void;
  takeKeys(pane: object, opened: object): () => void;
}

/** What was called of an opened file, with its arguments. */
function openedFile() {
  const calls: string[] = [];
  const call =
    (name: string) =>
    (...all: readonly unknown[]) =>
      void calls.push([name, ...all].join(' '));
  const file = { following: { value: false }, ...named(['follow', 'pause', 'jumpTo', 'jumpToEnd'], call) };
  const own = named(['step', 'stepErrors', 'togglePlot', 'copy', 'openSearch'], call);
  return { opened: { ...own, file, wraps: { value: true } }, calls };
}

const named = <T>(names: readonly string[], make: (name: string) => T) =>
  Object.fromEntries(names.map((name) => [name, make(name)]));

async function page() {
  const window = new Window();
  const { document, Element, HTMLInputElement } = window;
  const location = { pathname: '/', search: '', hash: '#/' };
  stubPage({ document, location, Element, HTMLInputElement });
  const { takeAllKeys, takeKeys } = (await import(KEYS)) as Keys;
  const pane = '<section class="pane"><input class="goto"><div class="rows" tabindex="0">rows</div></section>';
  document.body.innerHTML = `${pane}${pane}<input id="filter">`;
  takeAllKeys();
  const panes = [...document.querySelectorAll('.pane')].map((element) => {
    const { opened, calls } = openedFile();
    return { element, opened, calls, stop: takeKeys(element, opened) };
  });
  onTestFinished(() => {
    for (const { stop } of panes) stop();
    document.body.replaceChildren();
  });
  const fire = (type: string, target: unknown = document.body) =>
    (target as typeof document.body).dispatchEvent(new window.Event(type, { bubbles: true }));
  /** Whether the browser does nothing with it. */
  const press = (key: string, more: object = {}, target: unknown = document.body) => {
    const event = new window.KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, ...more });
    (target as typeof document.body).dispatchEvent(event);
    return event.defaultPrevented;
  };
  const taken = () => panes.map(({ calls }) => calls.splice(0));
  return { document, panes: panes as [(typeof panes)[0], (typeof panes)[0]], fire, press, taken };
}

it('each key of a file does what it is for', async () => {
  const { document, panes, press, taken } = await page();
  const [{ opened, element }] = panes;
  const calls = {
    ...{ f: 'follow', g: 'jumpTo 0', Home: 'jumpTo 0', G: 'jumpToEnd', End: 'follow', n: 'step false', N: 'step true' },
    ...{
      e: 'stepErrors false',
      E: 'stepErrors true',
      p: 'togglePlot',
      c: 'copy',
      '/': 'openSearch',
    },
  };
  for (const [key, call] of Object.entries(calls)) {
    expect(press(key), key).toBe(true);
    expect(taken(), key).toEqual([[call], []]);
  }
  opened.file.following.value = true;
  press('f');
  press('w');
  expect([taken()[0], opened.wraps.value]).toEqual([['pause'], false]);
  press('l');
  expect(document.activeElement).toBe(element.querySelector('.goto'));
});

it('a key acts on the file around the focus, else on the one that was used last, and is left to fields', async () => {
  const { document, panes, fire, press, taken } = await page();
  const [first, second] = panes;
  const isTaken = (expected: readonly (readonly string[])[], target?: unknown) => {
    expect(press('g', {}, target)).toBe(true);
    expect(taken()).toEqual(expected);
  };
  const [ofFirst, ofSecond] = [
    [['jumpTo 0'], []],
    [[], ['jumpTo 0']],
  ];
  isTaken(ofFirst);
  for (const type of ['pointerdown', 'wheel', 'focusin']) {
    fire(type, second.element.querySelector('.rows'));
    isTaken(ofSecond);
    fire(type, document.querySelector('#filter'));
    isTaken(ofSecond);
    isTaken(ofFirst, first.element.querySelector('.rows'));
    isTaken(ofFirst);
  }
  for (const [key, more, target] of [
    ['g', {}, document.querySelector('#filter')],
    ['g', {}, first.element.querySelector('.goto')],
    ['g', { ctrlKey: true }, document.body],
    ['g', { altKey: true }, document.body],
    ['x', {}, document.body],
    ['ArrowRight', {}, document.body],
  ] as const)
    expect([press(key, more, target), taken()]).toEqual([false, [[], []]]);
  // A file that was closed has no keys.
  fire('pointerdown', second.element);
  second.stop();
  second.element.remove();
  isTaken(ofFirst);
  first.stop();
  expect([press('g'), taken()]).toEqual([false, [[], []]]);
});
