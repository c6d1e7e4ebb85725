/** The keys of a pane: on the whole page, unless the reader types; `?` lists them. */
import { describe, expect, it } from 'vitest';
import { until } from '../../../../support/e2e-until.ts';
import { needs } from '../../../../support/needs.ts';
import { viewedJob } from '../../../../support/view-jobs.ts';

describe('the keys of the page', needs('chromium'), () => {
  it('work after a click on a link, and not while the reader types', async (context) => {
    const lines = Array.from({ length: 400 }, (_, line) => `line ${line + 1}\n`).join('');
    const { view, label } = await viewedJob(context, `${lines}10 %\r50 %\r100 %\n`);
    const { keyboard } = view.page;
    await view.page.locator('.job-row').first().click();
    const pane = await view.pane(label);
    await view.page.locator('.file-link', { hasText: 'stdout' }).click();
    await keyboard.press('g');
    await pane.getByText('line 1', { exact: true }).waitFor();
    await keyboard.press('?');
    const list = view.page.getByRole('dialog', { name: 'Keys' });
    await list.getByText('wrap lines').waitFor();
    await keyboard.press('G');
    await keyboard.press('Escape');
    await list.waitFor({ state: 'hidden' });
    await pane.getByText('line 1', { exact: true }).waitFor();
    await keyboard.press('l');
    await keyboard.type('200');
    await keyboard.press('Enter');
    await pane.locator('.row.selected').getByText('line 200', { exact: true }).waitFor();
    await keyboard.press('l');
    await keyboard.type('wg');
    expect(await pane.getByRole('textbox').inputValue()).toBe('wg');
    await keyboard.press('Escape');
    await keyboard.press('Shift+G');
    const last = pane.locator('.row .text').last();
    await until('what a terminal shows', async () => (await last.innerText()) === '100 %');
    expect(view.wrongs).toEqual([]);
  });
});
