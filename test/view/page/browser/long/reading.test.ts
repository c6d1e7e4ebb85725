/** The page as a person uses it: what is folded and marked. */
import { describe, expect, it } from 'vitest';
import { needs } from '../../../../support/needs.ts';
import { shown } from '../../../../support/view-browser.ts';
import { JOB, TASK } from '../../../../support/view-place.ts';

const BAR = Array.from({ length: 10_000 }, (_, state) => `epoch 15: ${state} of 10000 `.padEnd(60)).join('\r');
const TRACEBACK =
  'Traceback (most recent call last):\n  File "a.py", line 7\n    solve()\n    ^^^^^^^\nValueError: nan\n';
const STDOUT = `#/job/${JOB}/live?file=${TASK}/stdout`;

describe('the page', needs('chromium'), () => {
  it('folds progress bars and tracebacks, selects nothing, and marks what is invisible', async (context) => {
    const stdoutText = `before\n${BAR}\npass\u200bword\n${TRACEBACK}`;
    const { view, page, keyboard, stdout } = await shown(context, { stdout: stdoutText });
    await view.show(STDOUT);
    const pane = await stdout();
    const bar = pane.locator('.row', { hasText: 'epoch 15: 9999 of 10000' });
    await bar.getByText(/earlier states$/).waitFor();
    await pane.getByText('before', { exact: true }).waitFor();
    const heightOf = async (part: string) => (await pane.locator(part).boundingBox())?.height;
    expect(await heightOf('.overview'), 'the scroll bar is as high as the rows').toBe(await heightOf('.rows'));
    expect(await pane.locator('.row').count()).toBe(5);
    expect(await pane.locator('.row.selected').count()).toBe(0);
    expect(await pane.locator('.row .mark').allInnerTexts()).toEqual(['U+200B']);
    await pane.getByRole('button', { name: '… 3 lines' }).click();
    await pane.getByText('solve()').waitFor();
    await keyboard.press('t');
    await pane.getByRole('button', { name: '… 3 lines' }).waitFor();
    expect(await pane.getByText('solve()').count()).toBe(0);
    // A search leads to a folded line.
    await keyboard.press('/');
    await keyboard.type('solve');
    await pane.locator('.row.found').getByText('solve()').waitFor();
    await keyboard.press('Escape');

    await pane.getByLabel('More').click();
    const [plain] = await Promise.all([
      page.waitForEvent('popup'),
      pane.getByRole('link', { name: 'Plain text in a tab of its own' }).click(),
    ]);
    await plain.waitForLoadState();
    expect(await plain.locator('body').innerText()).toContain('pass\u200bword\nTraceback');
    expect(view.wrongs).toEqual([]);
  });
});
