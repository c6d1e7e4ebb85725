/** What grows while a person looks at it. */
import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { until } from '../../../../support/e2e-until.ts';
import { needs } from '../../../../support/needs.ts';
import { LANGUAGES, lines, viewedJob } from '../../../../support/view-jobs.ts';

describe('a file that grows', needs('chromium'), () => {
  it('is on the page what it is in the mirror, from its first byte to its last', async (context) => {
    const { task, mirror, view, label, hash } = await viewedJob(context, lines(0, 2_000));
    await view.show(hash);
    const pane = await view.pane(label);
    // In pieces that end within lines and within characters.
    const more = Buffer.from(lines(2_000, 500));
    for (let at = 0; at < more.length; at += 4_937) {
      fs.appendFileSync(task.files.stdout, more.subarray(at, at + 4_937));
      const { size } = fs.statSync(task.files.stdout);
      // A character that the end cuts waits for its rest.
      await until('the piece in the mirror', () => fs.statSync(mirror).size > size - 32);
    }
    const last = `2499 ${LANGUAGES[2_499 % LANGUAGES.length]}`;
    await pane.getByText(last, { exact: true }).waitFor();
    expect(await view.isAtEnd(pane)).toBe(true);
    expect(await view.wholeText(pane)).toBe(fs.readFileSync(mirror, 'utf8'));
    expect(view.wrongs).toEqual([]);
  });

  it('stays at its end when a plot takes half of its place, and the plot grows', async (context) => {
    const numbers = (from: number, count: number) =>
      Array.from({ length: count }, (_, index) => `residual ${(1 / (from + index + 1)).toExponential(3)}\n`).join('');
    const { task, view, label, hash } = await viewedJob(context, numbers(0, 200));
    await view.show(hash);
    const pane = await view.pane(label);
    await pane.getByLabel('More').click();
    await pane.getByRole('button', { name: 'Plot the numbers' }).click();
    await pane.getByText('200 points').waitFor();
    await until('the end on the page', () => view.isAtEnd(pane));
    fs.appendFileSync(task.files.stdout, numbers(200, 100));
    await pane.getByText('300 points').waitFor();
    await until('the end on the page', () => view.isAtEnd(pane));
    expect(view.wrongs).toEqual([]);
  });
});
