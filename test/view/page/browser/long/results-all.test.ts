/** Results that a person opens: a lone directory, a table, a notebook. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { requestOf, taskOf } from '../../../../support/e2e-job.ts';
import { Place } from '../../../../support/e2e-place.ts';
import { PATIENCE } from '../../../../support/e2e-until.ts';
import { needs } from '../../../../support/needs.ts';
import { linkOf, startBrowser, ViewPage, viewSection } from '../../../../support/view-browser.ts';

const HOSTILE = '<img src=x onerror="window.hacked=1">';

describe('results', needs('chromium'), () => {
  it('are open where they lie alone; tables are sorted, notebooks are text', PATIENCE, async (context) => {
    const place = Place.make(context);
    const sandbox = await place.startSandbox();
    const job = await sandbox.submit({ tasks: [{}] });
    const directory = path.dirname(taskOf(job).files.stdout);
    fs.writeFileSync(path.join(directory, 'table.csv'), 'step,energy,note\n1,2.5,"two\nlines"\n2,-7,b\n3,11,c\n');
    const outputs = [{ output_type: 'display_data', data: { 'text/html': HOSTILE } }];
    const cells = [
      { cell_type: 'markdown', source: HOSTILE },
      { cell_type: 'code', source: 'print(1)', outputs },
    ];
    fs.writeFileSync(path.join(directory, 'run.ipynb'), JSON.stringify({ nbformat: 4, cells }));
    place.configure(sandbox, { watch: [requestOf(job)], ...(await viewSection()) });
    const agent = await place.run();
    await agent.logs('results synced');
    const view = await ViewPage.open(await startBrowser(context), await linkOf(place));
    await view.show(`#/job/${job.jobId}/results`);

    await view.page.getByRole('link', { name: 'table.csv' }).click();
    const energies = async () => (await view.page.locator('.csv td:nth-child(2)').allTextContents()).join(' ');
    await view.page.getByRole('cell', { name: '2.5' }).waitFor();
    expect(await energies()).toBe('2.5 -7 11');
    const head = view.page.getByRole('columnheader', { name: 'energy' });
    for (const [order, expected] of [
      ['ascending', '-7 2.5 11'],
      ['descending', '11 2.5 -7'],
      ['none', '2.5 -7 11'],
    ] as const) {
      await head.getByRole('button').click();
      await view.page.locator(`th[aria-sort="${order}"]`, { hasText: 'energy' }).waitFor();
      expect(await energies()).toBe(expected);
    }
    // Numbers stand at the right, texts at the left, with their line breaks (D15).
    const styles = async (column: number) => {
      const cell = `.csv tbody tr:first-child td:nth-child(${column})`;
      const drawn = [await view.styleOf(cell, 'display'), await view.styleOf(cell, 'textAlign')];
      return [...drawn, await view.styleOf(cell, 'whiteSpace'), await view.page.locator(cell).textContent()];
    };
    expect(await styles(2)).toEqual(['table-cell', 'end', 'pre', '2.5']);
    expect(await styles(3)).toEqual(['table-cell', 'start', 'pre', 'two\nlines']);
    const screenshots = process.env['JOBTAIL_SCREENSHOTS'];
    if (screenshots !== undefined) await view.page.screenshot({ path: `${screenshots}/csv.png` });

    await view.page.getByRole('link', { name: 'run.ipynb' }).click();
    const notebook = view.page.getByRole('region', { name: 'Notebook' });
    await notebook.getByText('print(1)').waitFor();
    await notebook.getByText(HOSTILE).waitFor();
    await notebook.getByText('(text/html: not shown)').waitFor();
    if (screenshots !== undefined) await view.page.screenshot({ path: `${screenshots}/notebook.png` });
    // What is open has its address: it survives a reload.
    await view.page.reload();
    await notebook.getByText('print(1)').waitFor();
    const tree = view.page.getByRole('region', { name: 'Results' });
    expect(await tree.getByRole('link', { name: 'run.ipynb' }).getAttribute('aria-current')).toBe('true');
    await view.page.getByRole('link', { name: 'Close' }).click();
    await notebook.waitFor({ state: 'detached' });
    await view.show(`#/job/${job.jobId}/results?name=${encodeURIComponent('/gone')}`);
    await view.page.getByText('there is no result of this name').waitFor();
    expect(await view.page.evaluate('typeof window.hacked')).toBe('undefined');
    expect(view.wrongs).toEqual([]);
  });
});
