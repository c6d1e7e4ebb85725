/** Results that a person opens: a lone directory, and its address. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { requestOf, taskOf } from '../../../../support/e2e-job.ts';
import { Place } from '../../../../support/e2e-place.ts';
import { needs } from '../../../../support/needs.ts';
import { linkOf, startBrowser, ViewPage, viewSection } from '../../../../support/view-browser.ts';

it('results are open where they lie alone, and what is open has its address', needs('chromium'), async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  const job = await sandbox.submit({ tasks: [{}] });
  const directory = path.dirname(taskOf(job).files.stdout);
  fs.writeFileSync(path.join(directory, 'table.csv'), 'step,energy,note\n1,2.5,a\n2,-7,b\n');
  place.configure(sandbox, { watch: [requestOf(job)], ...(await viewSection()) });
  const agent = await place.run();
  await agent.logs('results synced');
  const view = await ViewPage.open(await startBrowser(context), await linkOf(place));
  await view.show(`#/job/${job.jobId}/results`);

  await view.page.getByRole('link', { name: 'table.csv' }).click();
  await view.page.locator('.result .row').getByText('2,-7,b').waitFor();

  // What is open has its address: it survives a reload.
  await view.page.reload();
  await view.page.locator('.result .row').getByText('2,-7,b').waitFor();
  const tree = view.page.getByRole('region', { name: 'Results' });
  expect(await tree.getByRole('link', { name: 'table.csv' }).getAttribute('aria-current')).toBe('true');
  await view.page.getByRole('link', { name: 'Close' }).click();
  await view.page.locator('.result').waitFor({ state: 'detached' });
  await view.show(`#/job/${job.jobId}/results?name=${encodeURIComponent('/gone')}`);
  await view.page.getByText('there is no result of this name').waitFor();
  expect(view.wrongs).toEqual([]);
});
