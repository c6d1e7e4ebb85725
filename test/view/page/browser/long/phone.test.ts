/** The page as a person uses it on a phone. */
import { describe, expect, it } from 'vitest';
import { needs } from '../../../../support/needs.ts';
import { shown } from '../../../../support/view-browser.ts';
import { JOB } from '../../../../support/view-place.ts';

const LINES = Array.from({ length: 200 }, (_, line) => `step ${line}\n`).join('');

describe('the page', needs('chromium'), () => {
  it('gives a log most of the screen of a phone, and has targets for fingers', async (context) => {
    const { view, page, stdout } = await shown(context, { stdout: LINES });
    await page.setViewportSize({ width: 390, height: 844 });
    const pane = await stdout();
    await pane.getByText('step 199', { exact: true }).waitFor();
    const share = async () => ((await pane.locator('.rows').boundingBox())?.height ?? 0) / 844;
    expect(await share()).toBeGreaterThan(0.7);
    for (const target of await page.locator('button:visible, a:visible, summary:visible').all()) {
      if ((await target.getAttribute('class')) === 'number') continue;
      const { height = 0, width = 0 } = (await target.boundingBox()) ?? {};
      expect([await target.innerText(), Math.min(height, width) >= 40]).toEqual([await target.innerText(), true]);
    }
    const turnList = () => page.getByRole('button', { name: `stdout of task` }).click();
    await turnList();
    await page.locator('.file-link').first().waitFor();
    expect(await share(), 'the unfolded list lies over the log').toBeGreaterThan(0.7);
    await turnList();
    await pane.getByLabel('More').click();
    const { x = -1, width = 0 } = (await pane.locator('.menu-items').boundingBox()) ?? {};
    expect([x >= 0, x + width <= 390], 'all of the menu is on the screen').toEqual([true, true]);
    await pane.getByRole('button', { name: 'Plot the numbers' }).click();
    await pane.locator('.plot canvas').waitFor();
    expect(await share(), 'a plot lies over the log').toBeGreaterThan(0.7);
    // The end of the log is not under it.
    await pane.getByText('step 199', { exact: true }).click();
    await pane.getByRole('button', { name: 'Close the plot' }).click();
    expect(view.wrongs).toEqual([]);
  });

  it.for([1280, 390])('keeps its tabs in place, and draws no frame round a log: %i px wide', async (width, context) => {
    const { place, view, page, stdout } = await shown(context, { stdout: LINES }, (place) => {
      place.addResult('/11/a.txt', 'one');
      place.report(JOB, { state: 'Running', name: 'wing' });
    });
    await page.setViewportSize({ width, height: 844 });
    const pane = await stdout();
    const tabs = page.locator('.tabs a');
    const places = async () =>
      (await Promise.all([0, 1].map((tab) => tabs.nth(tab).boundingBox()))).map((box) => box?.x);
    await page.locator('.tabs .badge').waitFor({ state: 'attached' });
    const before = await places();
    for (let number = 0; number < 1_000; number++) place.addResult(`/11/${number}.txt`);
    place.report(JOB, { state: 'Finished', name: 'wing', endTime: { text: '2026-01-01T10:00:00Z', ms: 1 } });
    await page.locator('.tabs .badge', { hasText: '1,001' }).waitFor({ state: 'attached' });
    expect(await places()).toEqual(before);
    await pane.locator('.rows').press('ArrowUp');
    const [outline, line] = ['.rows', '.pane-bar'].map((part) => `getComputedStyle(document.querySelector('${part}'))`);
    expect(await page.evaluate(`[${outline}.outlineStyle, ${line}.boxShadow !== 'none']`)).toEqual(['none', true]);
    expect(view.wrongs).toEqual([]);
  });
});
