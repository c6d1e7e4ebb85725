/** The search over all jobs: lines are text, and each leads to its place in the file. */

import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { requestOf, taskOf } from '../../../../support/e2e-job.ts';
import { Place } from '../../../../support/e2e-place.ts';
import { PATIENCE } from '../../../../support/e2e-until.ts';
import { needs } from '../../../../support/needs.ts';
import { linkOf, startBrowser, ViewPage, viewSection } from '../../../../support/view-browser.ts';

describe('the search over all jobs', needs('chromium'), () => {
  it('shows lines of every job, and opens one at its place', PATIENCE, async (context) => {
    const place = Place.make(context);
    const sandbox = await place.startSandbox();
    const jobs = [await sandbox.submit({ tasks: [{}] }), await sandbox.submit({ tasks: [{}] })];
    for (const [index, job] of jobs.entries()) {
      const lines = Array.from({ length: 4_000 }, (_, line) => `line ${line}`);
      lines[3_000] = `<b onclick=window.hacked=1>ERROR</b> of job ${index}`;
      fs.writeFileSync(taskOf(job).files.stdout, `${lines.join('\n')}\n`);
    }
    place.configure(sandbox, { watch: jobs.map(requestOf), results: { enabled: false }, ...(await viewSection()) });
    await place.run();
    for (const job of jobs) await place.mirrored(job, 'stdout');
    const view = await ViewPage.open(await startBrowser(context), await linkOf(place));
    await view.page.getByRole('link', { name: 'Search' }).click();
    await view.page.getByRole('button', { name: 'Show errors of all jobs' }).click();
    await view.page.getByText('the first of 2 tasks').waitFor();
    await view.page.getByRole('searchbox', { name: 'Search all jobs' }).fill('error</b>');
    await view.page.keyboard.press('Enter');
    await view.page.getByText('2 lines in 2 files of 8').waitFor();
    // The address can be sent.
    expect(await view.page.evaluate('location.hash')).toBe('#/search?text=error%3C%2Fb%3E');
    const [, second] = jobs;
    await view.page.getByRole('link', { name: /of job 1$/ }).click();
    const pane = await view.pane(`stdout of task ${taskOf(second as (typeof jobs)[number]).taskId}`);
    await pane.getByText('<b onclick=window.hacked=1>ERROR</b> of job 1').waitFor();
    const shown = await view.shownLines(pane);
    expect(shown.find(({ text }) => text.includes('ERROR'))?.number).toBe('3001');
    expect(await view.page.evaluate('typeof window.hacked')).toBe('undefined');
    expect(view.wrongs).toEqual([]);
  });
});
