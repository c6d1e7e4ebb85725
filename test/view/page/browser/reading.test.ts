/** The page as a person uses it: logs, keys, the tab, results. */
import { describe, expect, it } from 'vitest';
import type { JobId, LiveFileName } from '../../../../src/job.ts';
import { PATIENCE, until } from '../../../support/e2e-until.ts';
import { needs } from '../../../support/needs.ts';
import { startBrowser, ViewPage } from '../../../support/view-browser.ts';
import { JOB, TASK, ViewPlace } from '../../../support/view-place.ts';

const BAR = Array.from({ length: 10_000 }, (_, state) => `epoch 15: ${state} of 10000 `.padEnd(60)).join('\r');
const LINES = Array.from({ length: 200 }, (_, line) => `step ${line}\n`).join('');
const TRACEBACK =
  'Traceback (most recent call last):\n  File "a.py", line 7\n    solve()\n    ^^^^^^^\nValueError: nan\n';
const OTHER = '502' as JobId;
const STDOUT = `#/job/${JOB}/live?file=${TASK}/stdout`;

async function shown(
  context: Parameters<typeof startBrowser>[0],
  files: Partial<Record<LiveFileName, string>>,
  fill = (_: ViewPlace) => {},
) {
  const place = await ViewPlace.serve({ agentPid: process.pid });
  place.addJob();
  for (const [file, content] of Object.entries(files)) place.write(file as LiveFileName, content);
  fill(place);
  const view = await ViewPage.open(await startBrowser(context), place.view.link());
  const { page } = view;
  const stdout = () => view.pane(`stdout of task ${TASK}`);
  const hash = () => page.evaluate('location.hash') as Promise<string>;
  return { place, view, page, keyboard: page.keyboard, stdout, hash };
}

describe('the page', needs('chromium'), () => {
  it('folds progress bars and tracebacks, selects nothing, and marks what is invisible', PATIENCE, async (context) => {
    const stdoutText = `before\n${BAR}\npass\u200bword\n${TRACEBACK}`;
    const { view, page, keyboard, stdout } = await shown(context, { stdout: stdoutText });
    await view.show(STDOUT);
    const pane = await stdout();
    const bar = pane.locator('.row', { hasText: 'epoch 15: 9999 of 10000' });
    await bar.getByText(/earlier states$/).waitFor();
    await pane.getByText('before', { exact: true }).waitFor();
    expect(await pane.locator('.row').count()).toBe(5);
    expect(await pane.locator('.row.selected').count()).toBe(0);
    expect(await pane.locator('.row .mark').allInnerTexts()).toEqual(['U+200B']);
    await pane.getByRole('button', { name: '… 3 lines' }).click();
    await pane.getByText('solve()').waitFor();
    await keyboard.press('t');
    await pane.getByRole('button', { name: '… 3 lines' }).waitFor();
    expect(await pane.getByText('solve()').count()).toBe(0);
    // A search leads to a folded line.
    await keyboard.press('/');
    await keyboard.type('solve');
    await pane.locator('.row.found').getByText('solve()').waitFor();
    await keyboard.press('Escape');

    await pane.getByLabel('More').click();
    const [plain] = await Promise.all([
      page.waitForEvent('popup'),
      pane.getByRole('link', { name: 'Plain text in a tab of its own' }).click(),
    ]);
    await plain.waitForLoadState();
    expect(await plain.locator('body').innerText()).toContain('pass\u200bword\nTraceback');
    expect(view.wrongs).toEqual([]);
  });

  it('gives a log most of the screen of a phone, and has targets for fingers', PATIENCE, async (context) => {
    const { view, page, stdout } = await shown(context, { stdout: LINES });
    await page.setViewportSize({ width: 390, height: 844 });
    await view.show(STDOUT);
    const pane = await stdout();
    await pane.getByText('step 199', { exact: true }).waitFor();
    const { height = 0 } = (await pane.locator('.rows').boundingBox()) ?? {};
    expect(height).toBeGreaterThan(0.7 * 844);
    for (const target of await page.locator('button:visible, a:visible, summary:visible').all()) {
      if ((await target.getAttribute('class')) === 'number') continue;
      const { height = 0, width = 0 } = (await target.boundingBox()) ?? {};
      expect([await target.innerText(), Math.min(height, width) >= 40]).toEqual([await target.innerText(), true]);
    }
    await page.getByRole('button', { name: `stdout of task` }).click();
    await page.locator('.file-link').first().waitFor();
    expect(view.wrongs).toEqual([]);
  });

  it('leads by keys from job to job and from file to file, and names the job in its tab', PATIENCE, async (context) => {
    const { view, page, keyboard, stdout, hash } = await shown(context, { stdout: LINES }, (place) => {
      place.addJob(OTHER);
      place.report(OTHER, { state: 'Failed', name: 'wing' });
    });
    await page.locator('.job-row').nth(1).waitFor();
    await keyboard.press('j');
    await keyboard.press('Enter');
    // What failed is first in the list.
    await until('the state in the title', async () => (await page.title()) === 'Failed · 502 wing · jobtail');
    const icon = () => page.locator('link[rel="icon"]').getAttribute('href');
    await until('the state in the icon', async () => (await icon())?.includes(encodeURIComponent('#b3261e')) === true);
    await keyboard.press('}');
    await (await stdout()).getByText('step 199').waitFor();
    expect(await hash()).toBe(`#/job/${JOB}/live`);
    await until('the next title', async () => (await page.title()).startsWith(`watched · ${JOB} `));
    expect(await icon()).not.toContain(encodeURIComponent('#b3261e'));
    await keyboard.press('{');
    await until('the job before', async () => (await hash()) === `#/job/${OTHER}/live`);
    await keyboard.press('Control+k');
    await page.locator('.jobs-page input:focus').waitFor();
    await keyboard.type(JOB);
    await keyboard.press('Enter');
    await (await stdout()).getByText('step 199').waitFor();
    await keyboard.press(']');
    await until('the next file', async () => (await hash()) !== `#/job/${JOB}/live`);
    await keyboard.press('[');
    await (await stdout()).getByText('step 199').waitFor();
    // Headings are in order: a file is below its job.
    expect(await page.locator('h3').count()).toBe(0);
    await keyboard.press('W');
    await (await stdout()).getByText('nothing found').waitFor();
    expect(view.wrongs).toEqual([]);
  });

  it('shows the task of results, copies one at once, and goes from picture to picture', PATIENCE, async (context) => {
    const { view, page, keyboard, hash } = await shown(context, {}, (place) => {
      place.commit('stdout', { listedName: '/11/stdout.txt' });
      const task = { id: TASK, name: 'solver', state: 'Running', startTime: null, endTime: null, errorMessage: null };
      place.report(JOB, { state: 'Running', tasks: [task] });
      place.addResult('/11/a.txt', 'one\ntwo\n');
      for (const name of ['/11/b.png', '/11/c.png']) place.addResult(name, Buffer.from('89504e470d0a1a0a', 'hex'));
    });
    await view.context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await view.show(`#/job/${JOB}/results`);
    await page.locator('.entry', { hasText: '/11/' }).getByText(`task ${TASK} solver`).waitFor();
    await page.getByRole('link', { name: 'a.txt' }).click();
    await (await view.pane('/11/a.txt')).getByText('two').waitFor();
    await keyboard.press('c');
    await page.getByText('2 lines copied').waitFor();
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe('one\ntwo\n');
    await page.getByRole('link', { name: 'b.png' }).click();
    await page.locator('iframe.preview').waitFor();
    await keyboard.press('ArrowRight');
    await until('the next picture', async () => (await hash()).endsWith('c.png'));
    await page.getByTitle('/11/c.png', { exact: true }).waitFor();
    await keyboard.press('ArrowLeft');
    await until('the picture before', async () => (await hash()).endsWith('b.png'));
    expect(view.wrongs).toEqual([]);
  });
});
