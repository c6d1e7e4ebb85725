/** What grows while a person looks at it. */
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { until } from '../../../../support/e2e-until.ts';
import { needs } from '../../../../support/needs.ts';
import { shown } from '../../../../support/view-browser.ts';
import { lines } from '../../../../support/view-jobs.ts';

describe('a file that grows', needs('chromium'), () => {
  it('is on the page what it is in the mirror, from its first byte to its last', async (context) => {
    const { place, view, stdout } = await shown(context, { stdout: lines(0, 2_000) });
    const pane = await stdout();
    const mirror = place.mirrorOf();
    // In pieces that end within lines and within characters.
    const more = Buffer.from(lines(2_000, 500));
    for (let at = 0; at < more.length; at += 4_937) {
      fs.appendFileSync(mirror, more.subarray(at, at + 4_937));
      const line = fs.readFileSync(mirror, 'utf8').split('\n').at(-2) ?? '';
      await pane.getByText(line, { exact: true }).waitFor();
    }
    expect(await view.isAtEnd(pane)).toBe(true);
    expect(await view.wholeText(pane)).toBe(fs.readFileSync(mirror, 'utf8'));
    expect(view.wrongs).toEqual([]);
  });

  it('stays at its end when a plot takes half of its place, and the plot grows', async (context) => {
    const numbers = (from: number, count: number) =>
      Array.from({ length: count }, (_, index) => `residual ${(1 / (from + index + 1)).toExponential(3)}\n`).join('');
    const { place, view, stdout } = await shown(context, { stdout: numbers(0, 200) });
    const pane = await stdout();
    await pane.getByLabel('More').click();
    await pane.getByRole('button', { name: 'Plot the numbers' }).click();
    await pane.getByText('200 points').waitFor();
    await until('the end on the page', () => view.isAtEnd(pane));
    fs.appendFileSync(place.mirrorOf(), numbers(200, 100));
    await pane.getByText('300 points').waitFor();
    await until('the end on the page', () => view.isAtEnd(pane));
    expect(view.wrongs).toEqual([]);
  });
});
