/** Who may see the page: a browser that has the token. */
import { it } from 'vitest';
import { needs } from '../../../../support/needs.ts';
import { viewedJob } from '../../../../support/view-growing-job.ts';

it('a browser without the token that had one is reported so on the open page', needs('chromium'), async (context) => {
  const { view, hash, label } = await viewedJob(context, 'a line\n');
  await view.show(hash);
  const pane = await view.pane(label);
  await pane.getByText('a line').waitFor();
  await view.context.clearCookies();
  await view.page.getByRole('link', { name: 'Results' }).click();
  await view.page.getByText('No access: the token').waitFor();
});
