/** What a job writes, and what it and its files are called, is text on the page, whatever it says. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { requestOf, taskOf } from '../../../../support/e2e-job.ts';
import { Place } from '../../../../support/e2e-place.ts';
import { needs } from '../../../../support/needs.ts';
import { linkOf, startBrowser, ViewPage, viewSection } from '../../../../support/view-browser.ts';

const ESC = '\u001b';
const LINES = [
  ['<script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">', undefined],
  ['javascript:window.hacked=1', undefined],
  [
    `${ESC}]0;title${ESC}\\${ESC}[2J${ESC}[1;1H${ESC}[31mred${ESC}[0m ${ESC}]8;;javascript:window.hacked=1${ESC}\\link${ESC}]8;;${ESC}\\`,
    'red link',
  ],
  ['turned \u202egnp.exe\u202c round', 'turned U+202Egnp.exeU+202C round'],
  ['nul \u0000 bell \u0007', 'nul ␀ bell ␇'],
  [`"'><svg onload=window.hacked=1>&lt;b&gt; \${1+1} {{1+1}}`, undefined],
] as const;
/** A job may be called so, its task too. */
const NAME = '<img src=x onerror=window.hacked=1>';
const FILES = {
  '<img src=x onerror=window.hacked=1>.txt': 'a result',
  'javascript:window.hacked=1': 'a result',
  'page.html': '<h1>a page</h1><script>document.body.append("hacked");parent.hacked=1;top.hacked=1</script>',
  'picture.svg': '<svg xmlns="http://www.w3.org/2000/svg"><script>top.hacked=1</script><circle r="9"/></svg>',
  'table.csv': 'a,b\n<img src=x onerror=window.hacked=1>,2\n',
} as const;

async function hostileJob(context: Parameters<typeof Place.make>[0]) {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  const job = await sandbox.submit({ name: NAME, tasks: [{ name: NAME }] });
  const task = taskOf(job);
  fs.writeFileSync(task.files.stdout, LINES.map(([line]) => `${line}\n`).join(''));
  for (const [name, content] of Object.entries(FILES))
    fs.writeFileSync(path.join(path.dirname(task.files.stdout), name), content);
  place.configure(sandbox, {
    service: { jobsUrl: sandbox.jobsUrl },
    watch: [requestOf(job)],
    ...(await viewSection()),
  });
  const agent = await place.run();
  await place.mirrored(job, 'stdout');
  await agent.logs('results synced');
  const view = await ViewPage.open(await startBrowser(context), await linkOf(place));
  return { job, task, view };
}

/** Nothing ran, and nothing that only code could have made is there. */
async function expectUnharmed(view: ViewPage): Promise<void> {
  expect(await view.page.evaluate('typeof window.hacked')).toBe('undefined');
  expect(await view.page.locator('#page script, #page img, #page object, #page embed').count()).toBe(0);
  expect(await view.page.locator('a[href*="javascript:"]').count()).toBe(0);
  expect(view.wrongs).toEqual([]);
}

describe('what a job writes', needs('chromium'), () => {
  it('is text on the page, and its name is, too', async (context) => {
    const { job, task, view } = await hostileJob(context);
    await view.page.getByText(NAME).first().waitFor();
    await expectUnharmed(view);
    await view.show(`#/job/${job.jobId}/live?file=${task.taskId}/stdout`);
    const pane = await view.pane(`stdout of task ${task.taskId}`);
    await view.page.getByRole('heading', { name: NAME }).first().waitFor();
    const shown = await view.shownLines(pane);
    expect(shown.map(({ text }) => text)).toEqual(LINES.map(([line, text]) => text ?? line));
    await expectUnharmed(view);
  });

  it('is text in results, or lies in a frame where nothing runs', async (context) => {
    const { job, view } = await hostileJob(context);
    await view.show(`#/job/${job.jobId}/results`);
    for (const name of Object.keys(FILES)) {
      await view.page.getByRole('link', { name, exact: true }).click();
      await view.page
        .getByRole('heading', { name: new RegExp(`${name.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`) })
        .waitFor();
      if (name.endsWith('.html')) await view.page.locator('.result .row').getByText('<h1>a page</h1>').waitFor();
      else if (name.endsWith('.csv'))
        await view.page.locator('.result .row').getByText('<img src=x onerror=window.hacked=1>,2').waitFor();
      else if (name.endsWith('.svg')) await view.page.locator('iframe.preview').waitFor();
      else await view.page.locator('.result .row').getByText('a result').waitFor();
      expect(await view.page.evaluate('typeof window.hacked')).toBe('undefined');
    }
    for (const link of await view.page.locator('a[href]').all())
      expect(await link.getAttribute('href')).toMatch(/^(#\/|api\/)/);
  });
});
