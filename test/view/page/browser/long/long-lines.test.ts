/** Lines of megabytes: all of their text can be reached, nothing is asked for again and again, and copies are exact. */
import type { Locator, Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { until } from '../../../../support/e2e-until.ts';
import { needs } from '../../../../support/needs.ts';
import { STDOUT_HASH, shown } from '../../../../support/view-browser.ts';

const WORDS = 400_000;
const LONG = Array.from({ length: WORDS }, (_, word) => `${word} word;`).join('');

/** Requests for bytes; what is asked for ends by itself. */
function countRequests(page: Page): () => Promise<number> {
  let count = 0;
  page.on('request', (request) => {
    if (/api\/(?:lines|raw)/.test(request.url())) count++;
  });
  return async () => {
    let [before, same] = [-1, 0];
    await until('the end of the requests', () => {
      same = count === before ? same + 1 : 0;
      before = count;
      return same >= 8 || count > 200;
    });
    return count;
  };
}

const isShown = (row: Locator) =>
  row.evaluate((element) => {
    const { top, bottom } = element.getBoundingClientRect();
    const area = element.closest('.rows')?.getBoundingClientRect();
    return area !== undefined && bottom > area.top && top < area.bottom;
  });

it('a line of megabytes is reached everywhere, and asked for once', needs('chromium'), async (context) => {
  const { view, stdout } = await shown(context, { stdout: `before\n${LONG}\nafter\n` });
  const requests = countRequests(view.page);
  const pane = await stdout();
  const screen = async () => (await view.shownLines(pane)).map(({ text }) => text).join('');
  // The last line does not fill the screen: what comes before it is there, too.
  await pane.getByText('after', { exact: true }).waitFor();
  await until('the text before it', async () => (await screen()).includes(`${WORDS - 1} word;`));
  await view.page.keyboard.press('g');
  await pane.getByText('before', { exact: true }).waitFor();
  await until('the text behind it', async () => (await screen()).includes('0 word;1 word;2 word;'));
  for (const byte of [1_000_000, 3_000_000]) {
    await view.show(`${STDOUT_HASH}@${byte}`);
    const word = /[0-9]+ word;/.exec(`before\n${LONG}`.slice(byte))?.[0] ?? '';
    const row = pane.locator('.row', { hasText: `;${word}` });
    await row.first().waitFor();
    await until('the place on the screen', async () => await isShown(row.first()));
  }
  await view.page.keyboard.press('/');
  await view.page.keyboard.type('123456 word');
  await view.page.keyboard.press('Enter');
  const found = pane.locator('.row.found');
  await found.waitFor();
  expect(await found.innerText()).toContain('123456 word');
  await until('the match on the screen', async () => await isShown(found));
  // A row is wider than a screen that wraps no lines.
  const painted = () =>
    view.page.evaluate(`(() => {
      const found = document.querySelector('.row.found');
      const area = document.querySelector('.rows').getBoundingClientRect();
      return [...CSS.highlights.get('match')].some((range) => {
        const { left, right, top, bottom } = range.getBoundingClientRect();
        const isWithin = left >= area.left && right <= area.right && top >= area.top && bottom <= area.bottom;
        return found !== null && found.contains(range.startContainer) && isWithin;
      });
    })()`) as Promise<boolean>;
  const search = pane.getByRole('searchbox');
  await view.page.keyboard.press('Escape');
  await view.page.keyboard.press('w');
  await view.page.keyboard.press('/');
  await search.fill('345678 word');
  await until('the match, without wrapped lines', painted);
  expect(await requests(), 'requests for all of that').toBeLessThan(90);
  expect(view.wrongs).toEqual([]);
});

it('the chosen lines are copied, wherever the reader went since', needs('chromium'), async (context) => {
  const line = (number: number) => `\u001b[31mline ${number}\u001b[0m of a log`;
  const content = Array.from({ length: 30_000 }, (_, index) => `${line(index + 1)}\n`).join('');
  const { view, stdout } = await shown(context, { stdout: content });
  await view.context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const pane = await stdout();
  const number = (shown: string) => pane.getByRole('button', { name: `line ${shown}`, exact: true });
  await view.page.keyboard.press('g');
  await number('10').waitFor();
  await until('the lines of the screen to be copied, and no more', async () => {
    await view.page.keyboard.press('c');
    await pane.getByText('lines copied').waitFor();
    return await view.page.evaluate<boolean>(`(async () => {
      const end = document.querySelector('.rows').getBoundingClientRect().bottom;
      const texts = [...document.querySelectorAll('.rows .row .text')];
      const last = texts.findLast((text) => text.closest('.row').getBoundingClientRect().top < end);
      return (await navigator.clipboard.readText()).endsWith('\\n' + last.textContent.trimEnd() + '\\n');
    })()`);
  });
  await number('10').click();
  await number('12').click({ modifiers: ['Shift'] });
  await view.page.keyboard.press('Shift+G');
  await pane.getByText('line 30000 of a log', { exact: true }).waitFor();
  const three = [10, 11, 12];
  await view.page.keyboard.press('c');
  await pane.getByText('3 lines copied', { exact: true }).waitFor();
  expect(await view.page.evaluate<string>('navigator.clipboard.readText()')).toBe(
    three.map((each) => `line ${each} of a log\n`).join(''),
  );
  // What the mouse selects is copied as it is in the file, too.
  await number('29999').waitFor();
  await view.page.evaluate(`(() => {
    const texts = [...document.querySelectorAll('.row .text')].slice(-2);
    getSelection().setBaseAndExtent(texts[0], 0, texts[1], texts[1].childNodes.length);
  })()`);
  await view.page.keyboard.press('Control+c');
  expect(await view.page.evaluate<string>('navigator.clipboard.readText()')).toBe(
    'line 29999 of a log\nline 30000 of a log',
  );
  // The lines of the link are marked for whoever opens it.
  await until('the address', () => /(?:@|%40)[0-9]+/.test(view.page.url()));
  await view.page.reload();
  const marked = pane.locator('.row.selected');
  await until('the marked lines', async () => (await marked.count()) === three.length);
  for (const [at, each] of three.entries()) expect(await marked.nth(at).innerText()).toContain(`line ${each} of a log`);
});
