/** Lines in many languages, and jobs with a bit of everything in the view of an agent, in a browser. */
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import type { AxeResults } from 'axe-core';
import { expect, type TestContext } from 'vitest';
import { requestOf, taskOf } from './e2e-job.ts';
import { Place } from './e2e-place.ts';
import { type BrowserOptions, linkOf, startBrowser, ViewPage, viewSection } from './view-browser.ts';

const LANGUAGES = [
  'Příliš žluťoučký kůň úpěl ďábelské ódy nad hladinou řeky.',
  'نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر',
  'いろはにほへと散りぬるを 計算ノードは静かに動いている。',
  'plain text & <markup> "quoted"\ttabbed',
  'solver ✓ converged 🚀 after 👩🏽‍🔬',
];

/** `count` lines in many languages, numbered from `from` on. */
export const lines = (from: number, count: number) =>
  Array.from({ length: count }, (_, index) => `${from + index} ${LANGUAGES[(from + index) % LANGUAGES.length]}\n`).join(
    '',
  );

const AXE = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const ESC = '\u001b';
const COLOURS = [30, 31, 32, 33, 34, 35, 36, 37, 90, 91, 92, 93, 94, 95, 96, 97, 41, 42, 43, 44, 45, 46, 47, 7];

/** A job with colours, progress, numbers, results and a failure, and an agent with a view of it. */
export async function variedJob(context: Parameters<typeof Place.make>[0], options: BrowserOptions = {}) {
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
  const sweep = await sandbox.submit({ name: 'sweep', tasks: Array.from({ length: 8 }, () => ({ name: 'point' })) });
  for (const [index, task] of sweep.tasks.entries())
    fs.writeFileSync(task.files.stdout, `point ${index}\nWARN: coarse mesh\nERROR: diverged\n[debug] left\n`);
  place.configure(sandbox, {
    service: { jobsUrl: sandbox.jobsUrl },
    watch: [requestOf(job), requestOf(sweep), { job: '999999', tasks: ['1'] }],
    ...(await viewSection()),
  });
  const agent = await place.run();
  await place.mirrored(job, 'stdout');
  await place.mirrored(sweep, 'stdout');
  fs.writeFileSync(taskOf(sweep).files.stdout, 'another point\n');
  await agent.logs('results synced');
  const view = await ViewPage.open(await startBrowser(context), await linkOf(place), options);
  return {
    job,
    sweep,
    taskId,
    view,
    live: `#/job/${job.jobId}/live?file=${taskId}/stdout`,
    label: `stdout of task ${taskId}`,
  };
}

/** What axe finds. */
async function findings({ page }: ViewPage): Promise<string[]> {
  await page.evaluate(AXE);
  const { violations } = (await page.evaluate('axe.run()')) as AxeResults;
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html, any }) => `${id}: ${html} ${any[0]?.message ?? ''}`));
}

/** Goes through the parts of the page: axe finds nothing in any, and none is wider than the screen. */
export async function expectAccessible(context: TestContext, look: Required<BrowserOptions>): Promise<void> {
  const { job, sweep, view, live, label } = await variedJob(context, look);
  const check = async (what: string) => {
    expect([what, ...(await findings(view))]).toEqual([what]);
    const { scrollWidth } = (await view.page.evaluate('({ scrollWidth: document.documentElement.scrollWidth })')) as {
      scrollWidth: number;
    };
    expect(scrollWidth, `${what} is as wide as the screen`).toBeLessThanOrEqual(look.width);
  };
  await view.page.locator('.job-row .failure').waitFor();
  await check('jobs');
  await view.show(live);
  const pane = await view.pane(label);
  // On a phone, the list of files is folded.
  const turnList = async () => {
    const fold = view.page.locator('.unfold-files');
    if (await fold.isVisible()) await fold.click();
  };
  await turnList();
  await view.page.getByRole('progressbar').waitFor();
  await check('a job');
  await turnList();
  await pane.getByLabel('More').click();
  await pane.getByRole('button', { name: 'Plot the numbers' }).click();
  await pane.locator('.plot canvas').waitFor();
  await pane.getByRole('button', { name: 'Search' }).click();
  await pane.getByRole('searchbox').fill('residual');
  await pane.getByText(/of 400$/).waitFor();
  await check('a plot and a search');
  const [rewritten, other] = sweep.tasks.map(({ taskId }) => taskId);
  await view.show(`#/job/${sweep.jobId}/live?file=${rewritten}/stdout&file=${other}/stdout`);
  const again = await view.pane(`stdout of task ${rewritten}`);
  await again.getByText(/^Generation 2 began: /).waitFor();
  await (await view.pane(`stdout of task ${other}`)).locator('.level-error').first().waitFor();
  await check('many tasks, a rewritten file and levels');
  await view.show(`#/job/${job.jobId}/results`);
  await view.page.getByRole('link', { name: 'table.csv' }).click();
  await view.page.locator('.result .row').getByText('1,2.5').waitFor();
  await check('results');
  await view.show('#/search?text=residual');
  await view.page.getByText(/ lines in .* of \d+$/).waitFor();
  await check('the search');
  await view.show('#/service');
  for (const label of ['Bytes mirrored', 'Calls'])
    await view.page.getByRole('img', { name: label }).locator('canvas').waitFor();
  await check('the service');
  expect(view.wrongs).toEqual([]);
}
