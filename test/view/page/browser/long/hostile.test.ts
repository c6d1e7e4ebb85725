/** What a job writes, and what it and its files are called, is text on the page, whatever it says. */
import { describe, expect, it, type TestContext } from 'vitest';
import { needs } from '../../../../support/needs.ts';
import { shown, type ViewPage } from '../../../../support/view-browser.ts';
import { JOB } from '../../../../support/view-place.ts';

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
/** A job may be called so. */
const NAME = '<img src=x onerror=window.hacked=1>';
const FILES = {
  '<img src=x onerror=window.hacked=1>.txt': 'a result',
  'javascript:window.hacked=1': 'a result',
  'page.html': '<h1>a page</h1><script>document.body.append("hacked");parent.hacked=1;top.hacked=1</script>',
  'picture.svg': '<svg xmlns="http://www.w3.org/2000/svg"><script>top.hacked=1</script><circle r="9"/></svg>',
  'table.csv': 'a,b\n<img src=x onerror=window.hacked=1>,2\n',
} as const;

const hostileJob = (context: TestContext) =>
  shown(context, { stdout: LINES.map(([line]) => `${line}\n`).join('') }, (place) => {
    place.report(JOB, { name: NAME });
    for (const [name, content] of Object.entries(FILES)) place.addResult(`/11/${name}`, content);
  });

/** Nothing ran, and nothing that only code could have made is there. */
async function expectUnharmed(view: ViewPage): Promise<void> {
  expect(await view.page.evaluate('typeof window.hacked')).toBe('undefined');
  expect(await view.page.locator('#page script, #page img, #page object, #page embed').count()).toBe(0);
  expect(await view.page.locator('a[href*="javascript:"]').count()).toBe(0);
  expect(view.wrongs).toEqual([]);
}

describe('what a job writes', needs('chromium'), () => {
  it('is text on the page, and its name is, too', async (context) => {
    const { view, stdout } = await hostileJob(context);
    await view.page.getByText(NAME).first().waitFor();
    await expectUnharmed(view);
    const pane = await stdout();
    await view.page.getByRole('heading', { name: NAME }).first().waitFor();
    const rows = await view.shownLines(pane);
    expect(rows.map(({ text }) => text)).toEqual(LINES.map(([line, text]) => text ?? line));
    await expectUnharmed(view);
  });

  it('is text in results, or lies in a frame where nothing runs', async (context) => {
    const { view } = await hostileJob(context);
    await view.show(`#/job/${JOB}/results`);
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
