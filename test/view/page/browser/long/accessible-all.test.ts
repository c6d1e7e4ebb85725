/** The page for everybody: on a phone without serious findings of axe, and by the keyboard alone. */
import { describe, expect, it } from 'vitest';
import { until } from '../../../../support/e2e-until.ts';
import { needs } from '../../../../support/needs.ts';
import { expectAccessible, variedJob } from '../../../../support/view-jobs.ts';

describe('the page', needs('chromium'), () => {
  it('has no serious finding of axe and fits: a phone', async (context) => {
    await expectAccessible(context, { colorScheme: 'light', width: 390, height: 844 });
  });

  it('can be used by the keyboard alone', async (context) => {
    const { view, label } = await variedJob(context);
    const { keyboard } = view.page;
    const focused = () =>
      view.page.evaluate(
        'document.activeElement.className + " " + document.activeElement.ariaLabel',
      ) as Promise<string>;
    /** As often as it takes to get there. */
    const tabTo = async (name: RegExp) => {
      for (let times = 0; times < 60; times++) {
        if (name.test(await focused())) return;
        await keyboard.press('Tab');
      }
      throw new Error(`the key Tab never leads to ${name}`);
    };
    await view.page.locator('.job-row').first().waitFor();
    await keyboard.press('/');
    await keyboard.type('wing');
    await until('the filter', async () => (await view.page.locator('.job-row').count()) === 1);
    await tabTo(/job-link/);
    await keyboard.press('Enter');
    const pane = await view.pane(label);
    await tabTo(/^rows/);
    await keyboard.press('g');
    await keyboard.press('/');
    await keyboard.type('^step 19[7-9]$');
    await tabTo(/Regular expression/);
    await keyboard.press('Enter');
    await pane.getByText('1 of 3', { exact: true }).waitFor();
    const painted = () => view.page.evaluate('[...CSS.highlights.get("match")].map(String)') as Promise<string[]>;
    await until('what it matches', async () => (await painted()).sort().join() === 'step 197,step 198,step 199');
    await keyboard.press('Escape');
    await tabTo(/^rows/);
    await keyboard.press('p');
    await pane.locator('.plot canvas').waitFor();
    await tabTo(/^overview/);
    await keyboard.press('PageUp');
    await tabTo(/^rows/);
    await keyboard.press('End');
    await pane.getByText('colour 7', { exact: true }).waitFor();
    // A page back, as the key PageUp.
    await keyboard.press('Shift+Space');
    await pane.getByRole('button', { name: 'Follow', exact: true }).waitFor();
    expect(view.wrongs).toEqual([]);
  });
});
