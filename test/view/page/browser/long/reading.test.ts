/** The page as a person uses it: what is folded and marked. */
import { describe, expect, it } from 'vitest';
import { needs } from '../../../../support/needs.ts';
import { shown } from '../../../../support/view-browser.ts';
import { JOB, TASK } from '../../../../support/view-place.ts';

const BAR = Array.from({ length: 10_000 }, (_, state) => `epoch 15: ${state} of 10000 `.padEnd(60)).join('\r');
const STDOUT = `#/job/${JOB}/live?file=${TASK}/stdout`;

describe('the page', needs('chromium'), () => {
  it('folds progress bars, selects nothing, and marks what is invisible', async (context) => {
    const stdoutText = `before\n${BAR}\npass\u200bword\nsolve()\n`;
    const { view, page, stdout } = await shown(context, { stdout: stdoutText });
    await view.show(STDOUT);
    const pane = await stdout();
    const bar = pane.locator('.row', { hasText: 'epoch 15: 9999 of 10000' });
    await bar.getByText(/earlier states$/).waitFor();
    await pane.getByText('before', { exact: true }).waitFor();
    const heightOf = async (part: string) => (await pane.locator(part).boundingBox())?.height;
    expect(await heightOf('.overview'), 'the scroll bar is as high as the rows').toBe(await heightOf('.rows'));
    expect(await pane.locator('.row').count()).toBe(4);
    expect(await pane.locator('.row.selected').count()).toBe(0);
    expect(await pane.locator('.row .mark').allInnerTexts()).toEqual(['U+200B']);
    await pane.getByLabel('More').click();
    const [plain] = await Promise.all([
      page.waitForEvent('popup'),
      pane.getByRole('link', { name: 'Plain text in a tab of its own' }).click(),
    ]);
    await plain.waitForLoadState();
    expect(await plain.locator('body').innerText()).toContain('pass\u200bword\nsolve');
    expect(view.wrongs).toEqual([]);
  });
});
