import { type Element, Window } from 'happy-dom';
import { expect, it, onTestFinished, vi } from 'vitest';

// Imported by name: the page has types of its own, which the compiler checks elsewhere.
const SELECTED = '../../../../src/view/page/pane/selected-text.ts';

it('selected rows are copied as the lines of the file, and text within one row as the browser does', async () => {
  const { document } = new Window();
  const { copySelected } = (await import(SELECTED)) as { copySelected(event: object): void };
  const copied = (html: string, rangeCount = 1) => {
    const cloneContents = () => {
      const all = document.createElement('div') as Element;
      all.innerHTML = html;
      return all;
    };
    vi.stubGlobal('getSelection', () => ({ rangeCount, getRangeAt: () => ({ cloneContents }) }));
    onTestFinished(() => void vi.unstubAllGlobals());
    const event = { clipboardData: { setData: vi.fn() }, preventDefault: vi.fn() };
    copySelected(event);
    const [[type, text] = []] = event.clipboardData.setData.mock.calls;
    expect(event.preventDefault).toHaveBeenCalledTimes(type === undefined ? 0 : 1);
    return type === 'text/plain' ? text : type;
  };
  const row = (text: string, more = '') =>
    `<div class="row" ${more}><button>1</button><span class="text">${text}</span></div>`;
  const long = row('long', 'data-continued') + row('er', 'data-continued');
  expect(copied(long + row('<span>of</span> two') + row('') + row('last'))).toBe('longer\nof two\n\nlast');
  expect([copied('part of a row'), copied(row('a'), 0)]).toEqual([undefined, undefined]);
});
