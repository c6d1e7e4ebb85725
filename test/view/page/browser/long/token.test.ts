/** Who may see the page: a browser that has the token. */
import { describe, expect, it } from 'vitest';
import { PATIENCE, until } from '../../../../support/e2e-until.ts';
import { needs } from '../../../../support/needs.ts';
import { viewedJob } from '../../../../support/view-growing-job.ts';

describe('a browser without the token', needs('chromium'), () => {
  it('sees nothing, and is reported what to do', PATIENCE, async (context) => {
    const { view, link, job } = await viewedJob(context, 'a line\n');
    await view.page.getByText(job.jobId).first().waitFor();
    await view.context.clearCookies();
    await view.page.goto(new URL(link).origin);
    await until('a word about the token', async () => /agent view/.test(await view.page.locator('body').innerText()));
    expect(await view.page.getByText(job.jobId).count()).toBe(0);
  });

  it('that had one is reported so on the open page', PATIENCE, async (context) => {
    const { view, hash, label } = await viewedJob(context, 'a line\n');
    await view.show(hash);
    const pane = await view.pane(label);
    await pane.getByText('a line').waitFor();
    await view.context.clearCookies();
    await view.page.getByRole('link', { name: 'Results' }).click();
    await view.page.getByText('No access: the token').waitFor();
  });
});
