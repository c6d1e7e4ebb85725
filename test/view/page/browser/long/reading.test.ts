/** A log as a person reads it: nothing is marked unasked, a progress bar is one row, and a phone shows most of it. */
import { describe, expect, it } from 'vitest';
import { PATIENCE, until } from '../../../../support/e2e-until.ts';
import { needs } from '../../../../support/needs.ts';
import { viewedJob } from '../../../../support/view-growing-job.ts';

const BAR = Array.from({ length: 10_000 }, (_, state) => `epoch 15: ${state} of 10000 `.padEnd(60)).join('\r');
const LINES = Array.from({ length: 200 }, (_, line) => `step ${line}\n`).join('');
const screenshots = process.env['JOBTAIL_SCREENSHOTS'];

describe('a log on the page', needs('chromium'), () => {
  it(
    'has a progress bar as one row, nothing selected unasked, and marks for what cannot be seen',
    PATIENCE,
    async (context) => {
      const { view, label, hash } = await viewedJob(context, `before\n${BAR}\npass\u200bword\n`);
      await view.show(hash);
      const pane = await view.pane(label);
      const bar = pane.locator('.row', { hasText: 'epoch 15: 9999 of 10000' });
      await bar.getByText(/earlier states$/).waitFor();
      await pane.getByText('before', { exact: true }).waitFor();
      expect(await pane.locator('.row').count()).toBe(3);
      expect(await pane.locator('.row.selected').count()).toBe(0);
      expect(await pane.locator('.row .mark').allInnerTexts()).toEqual(['U+200B']);
      if (screenshots !== undefined) await view.page.screenshot({ path: `${screenshots}/bar.png` });
      expect(view.wrongs).toEqual([]);
    },
  );

  it('has most of the screen of a phone, and targets for fingers', PATIENCE, async (context) => {
    const { view, label, hash } = await viewedJob(context, LINES);
    await view.page.setViewportSize({ width: 390, height: 844 });
    await view.show(hash);
    const pane = await view.pane(label);
    await pane.getByText('step 199', { exact: true }).waitFor();
    if (screenshots !== undefined) await view.page.screenshot({ path: `${screenshots}/phone.png` });
    const { height = 0 } = (await pane.locator('.rows').boundingBox()) ?? {};
    expect(height).toBeGreaterThan(0.7 * 844);
    for (const target of await view.page.locator('button:visible, a:visible, summary:visible').all()) {
      if ((await target.getAttribute('class')) === 'number') continue;
      const box = await target.boundingBox();
      expect([await target.innerText(), box !== null && box.height >= 40 && box.width >= 40]).toEqual([
        await target.innerText(),
        true,
      ]);
    }
    await view.page.getByRole('button', { name: `stdout of task` }).click();
    await view.page.locator('.file-link').first().waitFor();
    expect(view.wrongs).toEqual([]);
  });

  it('is reached by keys, and named in the tab', PATIENCE, async (context) => {
    const { view, label, job } = await viewedJob(context, LINES);
    const { keyboard } = view.page;
    await view.page.locator('.job-row').first().waitFor();
    await keyboard.press('j');
    await keyboard.press('Enter');
    await (await view.pane(label)).getByText('step 199').waitFor();
    await until('the state in the title', async () => (await view.page.title()).startsWith(`watched · ${job.jobId} `));
    await keyboard.press(']');
    await until('the next file', async () => (await view.page.evaluate('location.hash')) !== `#/job/${job.jobId}/live`);
    await keyboard.press('Control+k');
    await view.page.locator('.jobs-page input:focus').waitFor();
    await keyboard.type(job.jobId);
    await keyboard.press('Enter');
    await (await view.pane(label)).getByText('step 199').waitFor();
    // Headings are in order: a file is below its job.
    const levels = await view.page.evaluate('[...document.querySelectorAll("h1, h2, h3")].map((one) => one.tagName)');
    expect((levels as string[]).filter((level) => level === 'H3')).toEqual([]);
    await keyboard.press('W');
    await (await view.pane(label)).getByText('nothing found').waitFor();
    expect(view.wrongs).toEqual([]);
  });
});
