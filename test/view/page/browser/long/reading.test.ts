/** The page as a person uses it: what is folded and marked, and its keys. */
import { describe, expect, it } from 'vitest';
import type { JobId } from '../../../../../src/job.ts';
import { until } from '../../../../support/e2e-until.ts';
import { needs } from '../../../../support/needs.ts';
import { shown } from '../../../../support/view-browser.ts';
import { JOB, TASK } from '../../../../support/view-place.ts';

const BAR = Array.from({ length: 10_000 }, (_, state) => `epoch 15: ${state} of 10000 `.padEnd(60)).join('\r');
const LINES = Array.from({ length: 200 }, (_, line) => `step ${line}\n`).join('');
const TRACEBACK =
  'Traceback (most recent call last):\n  File "a.py", line 7\n    solve()\n    ^^^^^^^\nValueError: nan\n';
const OTHER = '502' as JobId;
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

  it('leads by keys from job to job and from file to file, and names the job in its tab', async (context) => {
    const { view, page, keyboard, stdout, hash } = await shown(context, { stdout: LINES }, (place) => {
      place.addJob(OTHER);
      place.report(OTHER, { state: 'Failed', name: 'wing' });
    });
    await page.locator('.job-row').nth(1).waitFor();
    await keyboard.press('j');
    await keyboard.press('Enter');
    // What failed is first in the list.
    await until('the state in the title', async () => (await page.title()) === 'Failed · 502 wing · jobtail');
    const icon = () => page.locator('link[rel="icon"]').getAttribute('href');
    await until('the state in the icon', async () => (await icon())?.includes(encodeURIComponent('#b3261e')) === true);
    await keyboard.press('}');
    await (await stdout()).getByText('step 199').waitFor();
    expect(await hash()).toBe(`#/job/${JOB}/live`);
    await until('the next title', async () => (await page.title()).startsWith(`watched · ${JOB} `));
    expect(await icon()).not.toContain(encodeURIComponent('#b3261e'));
    await keyboard.press('{');
    await until('the job before', async () => (await hash()) === `#/job/${OTHER}/live`);
    await keyboard.press('Control+k');
    await page.locator('.jobs-page input:focus').waitFor();
    // A quick hand: both come before the page is drawn again.
    await page.evaluate(`{
      const input = document.querySelector('.jobs-page input');
      input.value = '${JOB}';
      input.dispatchEvent(new Event('input', { bubbles: true }));
      input.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
    }`);
    await until('the job that was typed', async () => (await hash()) === `#/job/${JOB}/live`);
    await (await stdout()).getByText('step 199').waitFor();
    await keyboard.press(']');
    const shownFile = async () => /[a-z]+$/.exec(await hash())?.[0];
    await until('the next file', async () => (await shownFile()) === 'stderr');
    await keyboard.press('[');
    await until('the file before', async () => (await shownFile()) === 'stdout');
    // As quick: the second key comes before the list is drawn again.
    await page.evaluate(`for (const key of [']', ']', '['])
      document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }))`);
    await until('one file further', async () => (await shownFile()) === 'stderr');
    await keyboard.press('[');
    await (await stdout()).getByText('step 199').waitFor();
    // Headings are in order: a file is below its job.
    expect(await page.locator('h3').count()).toBe(0);
    await keyboard.press('W');
    await (await stdout()).getByText('nothing found').waitFor();
    expect(view.wrongs).toEqual([]);
  });
});
