/** Results that a person opens: a lone directory, a table. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { requestOf, taskOf } from '../../../../support/e2e-job.ts';
import { Place } from '../../../../support/e2e-place.ts';
import { PATIENCE } from '../../../../support/e2e-until.ts';
import { needs } from '../../../../support/needs.ts';
import { linkOf, startBrowser, ViewPage, viewSection } from '../../../../support/view-browser.ts';

describe('results', needs('chromium'), () => {
  it(
    'are open where they lie alone; tables are sorted, and what is open has its address',
    PATIENCE,
    async (context) => {
      const place = Place.make(context);
      const sandbox = await place.startSandbox();
      const job = await sandbox.submit({ tasks: [{}] });
      const directory = path.dirname(taskOf(job).files.stdout);
      fs.writeFileSync(path.join(directory, 'table.csv'), 'step,energy,note\n1,2.5,"two\nlines"\n2,-7,b\n3,11,c\n');
      place.configure(sandbox, { watch: [requestOf(job)], ...(await viewSection()) });
      const agent = await place.run();
      await agent.logs('results synced');
      const view = await ViewPage.open(await startBrowser(context), await linkOf(place));
      await view.show(`#/job/${job.jobId}/results`);

      await view.page.getByRole('link', { name: 'table.csv' }).click();
      const energies = async () => (await view.page.locator('.csv td:nth-child(2)').allTextContents()).join(' ');
      await view.page.getByRole('cell', { name: '2.5' }).waitFor();
      expect(await energies()).toBe('2.5 -7 11');
      // Numbers stand at the right, texts at the left, with their line breaks (D15).
      const styles = async (column: number) => {
        const cell = `.csv tbody tr:first-child td:nth-child(${column})`;
        const drawn = [await view.styleOf(cell, 'display'), await view.styleOf(cell, 'textAlign')];
        return [...drawn, await view.styleOf(cell, 'whiteSpace'), await view.page.locator(cell).textContent()];
      };
      expect(await styles(2)).toEqual(['table-cell', 'end', 'pre', '2.5']);
      expect(await styles(3)).toEqual(['table-cell', 'start', 'pre', 'two\nlines']);
      const head = view.page.getByRole('columnheader', { name: 'energy' });
      for (const [order, expected] of [
        ['ascending', '-7 2.5 11'],
        ['descending', '11 2.5 -7'],
      ] as const) {
        await head.getByRole('button').click();
        await view.page.locator(`th[aria-sort="${order}"]`, { hasText: 'energy' }).waitFor();
        expect(await energies()).toBe(expected);
      }
      const screenshots = process.env['JOBTAIL_SCREENSHOTS'];
      if (screenshots !== undefined) await view.page.screenshot({ path: `${screenshots}/csv.png` });

      // What is open has its address: it survives a reload.
      await view.page.reload();
      await view.page.getByRole('cell', { name: '2.5' }).waitFor();
      const tree = view.page.getByRole('region', { name: 'Results' });
      expect(await tree.getByRole('link', { name: 'table.csv' }).getAttribute('aria-current')).toBe('true');
      await view.page.getByRole('link', { name: 'Close' }).click();
      await view.page.getByRole('region', { name: 'Table' }).waitFor({ state: 'detached' });
      await view.show(`#/job/${job.jobId}/results?name=${encodeURIComponent('/gone')}`);
      await view.page.getByText('there is no result of this name').waitFor();
      expect(view.wrongs).toEqual([]);
    },
  );
});
