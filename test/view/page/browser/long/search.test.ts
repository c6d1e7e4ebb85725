/** The search over all jobs: lines are text, and each leads to its place in the file. */
import { describe, expect, it } from 'vitest';
import type { JobId } from '../../../../../src/job.ts';
import { needs } from '../../../../support/needs.ts';
import { shown } from '../../../../support/view-browser.ts';

describe('the search over all jobs', needs('chromium'), () => {
  it('shows lines of every job, and opens one at its place', async (context) => {
    const logOf = (index: number) => {
      const lines = Array.from({ length: 4_000 }, (_, line) => `line ${line}`);
      lines[3_000] = `<b onclick=window.hacked=1>ERROR</b> of job ${index}`;
      return `${lines.join('\n')}\n`;
    };
    const { view, stdout } = await shown(context, { stdout: logOf(0) }, (place) => {
      place.addJob('502' as JobId);
      place.write('stdout', logOf(1), '502' as JobId);
    });
    await view.page.getByRole('link', { name: 'Search' }).click();
    await view.page.getByRole('button', { name: 'Show errors of all jobs' }).click();
    await view.page.getByText('in 2 tasks').waitFor();
    await view.page.getByRole('searchbox', { name: 'Search all jobs' }).fill('error</b>');
    await view.page.keyboard.press('Enter');
    await view.page.getByText('2 lines in 2 files of 8').waitFor();
    // The address can be sent.
    expect(await view.page.evaluate('location.hash')).toBe('#/search?text=error%3C%2Fb%3E');
    await view.page.getByRole('link', { name: /of job 1$/ }).click();
    const pane = await stdout();
    await pane.getByText('<b onclick=window.hacked=1>ERROR</b> of job 1').waitFor();
    const lines = await view.shownLines(pane);
    expect(lines.find(({ text }) => text.includes('ERROR'))?.number).toBe('3001');
    expect(await view.page.evaluate('typeof window.hacked')).toBe('undefined');
    expect(view.wrongs).toEqual([]);
  });
});
