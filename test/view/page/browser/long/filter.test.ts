/** A search that shows only the lines with matches, and lines around them. */
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { PATIENCE, until } from '../../../../support/e2e-until.ts';
import { needs } from '../../../../support/needs.ts';
import { viewedJob } from '../../../../support/view-growing-job.ts';

const line = (index: number) => (index % 100 === 50 ? `step ${index} <b>slow</b>` : `step ${index}`);
const text = (from: number, count: number) =>
  Array.from({ length: count }, (_, index) => `${line(from + index)}\n`).join('');

describe('a search as a filter', needs('chromium'), () => {
  it('shows matching lines with context, grows, and leads to the place', PATIENCE, async (context) => {
    const { view, label, hash, task } = await viewedJob(context, text(0, 20_000));
    const { keyboard } = view.page;
    await view.context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await view.show(hash);
    const pane = await view.pane(label);
    await keyboard.press('o');
    await keyboard.type('<B>SLOW');
    await pane.getByText('200 of 200', { exact: true }).waitFor();
    const shown = async () => (await view.shownLines(pane)).map(({ number, text: words }) => `${number} ${words}`);
    const around = (index: number) => [-2, -1, 0, 1, 2].map((by) => `${index + by + 1} ${line(index + by)}`);
    // The place in the file was its end.
    await until('the last matches', async () => (await shown()).slice(-5).join() === around(19_950).join());
    await keyboard.press('Escape');
    await pane.getByText('step 19960', { exact: true }).waitFor();
    await keyboard.press('o');
    await pane.locator('.scroll-keys').focus();
    await keyboard.press('g');
    await until('the first matches', async () => (await shown()).slice(0, 5).join() === around(50).join());
    await keyboard.press('c');
    await pane.getByText(/ lines copied$/).waitFor();
    const copied = (await view.page.evaluate('navigator.clipboard.readText()')) as string;
    expect(copied.startsWith([48, 49, 50, 51, 52, 148].map((each) => `${line(each)}\n`).join(''))).toBe(true);
    await keyboard.press('n');
    await pane.locator('.row.found').getByText(line(150)).waitFor();
    await keyboard.press('G');
    await pane.locator('.row.found').getByText(line(19_950)).waitFor();
    await keyboard.press('f');
    fs.appendFileSync(task.files.stdout, text(20_000, 100));
    await pane.getByText(line(20_050)).waitFor();
    await pane.getByRole('button', { name: 'line 19851' }).click();
    await pane.locator('.row.selected').getByText(line(19_850)).waitFor();
    await pane.getByText('step 19851', { exact: true }).waitFor();
    expect(await view.page.evaluate('document.querySelector(".text b")')).toBeNull();
    expect(view.wrongs).toEqual([]);
  });
});
