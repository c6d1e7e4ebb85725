/** The page for everybody: without serious findings of axe, by the keyboard alone, on a phone. */
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import type { AxeResults } from 'axe-core';
import { describe, expect, it } from 'vitest';
import { orderOf, taskOf } from '../../../support/e2e-job.ts';
import { Place } from '../../../support/e2e-place.ts';
import { PATIENCE, until } from '../../../support/e2e-until.ts';
import { needs } from '../../../support/needs.ts';
import { type BrowserOptions, linkOf, startBrowser, ViewPage, viewSection } from '../../../support/view-browser.ts';

const AXE = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const ESC = '\u001b';
const COLOURS = [30, 31, 32, 33, 34, 35, 36, 37, 90, 91, 92, 93, 94, 95, 96, 97, 41, 42, 43, 44, 45, 46, 47, 7];

/** A job with colours, progress, numbers, results and a failure, and an agent with a view of it. */
async function variedJob(context: Parameters<typeof Place.make>[0], options: BrowserOptions = {}) {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  const job = await sandbox.submit({ name: 'cfd wing', tasks: [{ name: 'solver' }] });
  const { files, taskId } = taskOf(job);
  const coloured = COLOURS.map((colour) => `${ESC}[${colour}mcolour ${colour}${ESC}[0m\n`).join('');
  const numbers = Array.from(
    { length: 400 },
    (_, step) => `step ${step}\nresidual ${(1 / (step + 1)).toExponential(3)}\n`,
  );
  fs.writeFileSync(files.stdout, numbers.join('') + coloured);
  fs.writeFileSync(path.join(path.dirname(files.stdout), 'table.csv'), 'step,energy\n1,2.5\n2,2.6\n');
  fs.writeFileSync(files.progress, '40 % after 60 of 150 steps\n');
  place.configure(sandbox, {
    service: { jobsUrl: sandbox.jobsUrl },
    watch: [orderOf(job), { job: '999999', tasks: ['1'] }],
    ...(await viewSection()),
  });
  const agent = await place.run();
  await place.mirrored(job, 'stdout');
  await agent.says(' results new or changed');
  const view = await ViewPage.open(await startBrowser(context), await linkOf(place), options);
  return {
    job,
    taskId,
    view,
    live: `#/job/${job.jobId}/live?file=${taskId}/stdout`,
    label: `stdout of task ${taskId}`,
  };
}

/** What axe finds that is serious or worse. */
async function findings({ page }: ViewPage): Promise<string[]> {
  await page.evaluate(AXE);
  const { violations } = (await page.evaluate('axe.run()')) as AxeResults;
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html, any }) => `${id}: ${html} ${any[0]?.message ?? ''}`));
}

const looks = [
  { colorScheme: 'light', width: 1280, height: 800 },
  { colorScheme: 'dark', width: 1280, height: 800 },
  { colorScheme: 'light', width: 390, height: 844 },
] as const;

describe('the page', needs('chromium'), () => {
  for (const look of looks)
    it(`has no serious finding of axe and fits: ${look.colorScheme}, ${look.width} wide`, PATIENCE, async (context) => {
      const { job, view, live, label } = await variedJob(context, look);
      const check = async (what: string) => {
        expect([what, ...(await findings(view))]).toEqual([what]);
        const { scrollWidth } = (await view.page.evaluate(
          '({ scrollWidth: document.documentElement.scrollWidth })',
        )) as {
          scrollWidth: number;
        };
        expect(scrollWidth, `${what} is as wide as the screen`).toBeLessThanOrEqual(look.width);
      };
      await view.page.locator('.job-row .failure').waitFor();
      await check('jobs');
      await view.show(live);
      const pane = await view.pane(label);
      await view.page.getByRole('progressbar').waitFor();
      await check('a job');
      await pane.getByRole('button', { name: 'Plot the numbers' }).click();
      await pane.locator('.plot canvas').waitFor();
      await pane.getByRole('button', { name: 'Search' }).click();
      await pane.getByRole('searchbox').fill('residual');
      await pane.getByText(/of 400$/).waitFor();
      await check('a plot and a search');
      await view.show(`#/job/${job.jobId}/results`);
      await view.page.locator('.entry-name[aria-expanded="false"]').first().click();
      await view.page.getByRole('button', { name: 'table.csv' }).click();
      await view.page.getByRole('cell', { name: '2.5' }).waitFor();
      await check('results');
      await view.show('#/service');
      await view.page.locator('.card').first().waitFor();
      await check('the service');
      expect(view.wrongs).toEqual([]);
    });

  it('can be used by the keyboard alone', PATIENCE, async (context) => {
    const { view, label } = await variedJob(context);
    const { keyboard } = view.page;
    const focused = () =>
      view.page.evaluate(
        'document.activeElement.className + " " + document.activeElement.ariaLabel',
      ) as Promise<string>;
    /** As often as it takes to get there. */
    const tabTo = async (name: RegExp) => {
      for (let times = 0; times < 60; times++) {
        if (name.test(await focused())) return;
        await keyboard.press('Tab');
      }
      throw new Error(`the key Tab never leads to ${name}`);
    };
    await view.page.locator('.job-row').first().waitFor();
    await keyboard.press('/');
    await keyboard.type('wing');
    await until('the filter', async () => (await view.page.locator('.job-row').count()) === 1);
    await tabTo(/job-row/);
    await keyboard.press('Enter');
    const pane = await view.pane(label);
    await tabTo(/^rows/);
    await keyboard.press('f');
    await pane.getByRole('button', { name: 'Follow', exact: true }).waitFor();
    await keyboard.press('g');
    await pane.getByText('step 0', { exact: true }).waitFor();
    await keyboard.press('/');
    await keyboard.type('step 199');
    await pane.locator('.row.found').getByText('step 199').waitFor();
    const painted = () => view.page.evaluate('[...CSS.highlights.get("match")].map(String)') as Promise<string[]>;
    await until('the match to be painted', async () => (await painted()).join() === 'step 199');
    await tabTo(/Regular expression/);
    await keyboard.press('Enter');
    await keyboard.press('/');
    await keyboard.press('Control+a');
    await keyboard.type('^step 19[7-9]$');
    await pane.getByText('1 of 3', { exact: true }).waitFor();
    await until('what it matches', async () => (await painted()).sort().join() === 'step 197,step 198,step 199');
    await keyboard.press('Escape');
    await tabTo(/^rows/);
    await keyboard.press('l');
    await keyboard.type('601');
    await keyboard.press('Enter');
    await pane.locator('.row.selected').getByText('step 300').waitFor();
    await tabTo(/^rows/);
    await keyboard.press('p');
    await pane.locator('.plot canvas').waitFor();
    await tabTo(/^overview/);
    await keyboard.press('PageUp');
    await tabTo(/^rows/);
    await keyboard.press('End');
    await pane.getByText('colour 7', { exact: true }).waitFor();
    expect(view.wrongs).toEqual([]);
  });
});
