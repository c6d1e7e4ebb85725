/** What a newcomer looked for, and did not find: the state on a phone, a binary result, a run time. */
import { describe, expect, it } from 'vitest';
import { until } from '../../../../support/e2e-until.ts';
import { needs } from '../../../../support/needs.ts';
import { shown } from '../../../../support/view-browser.ts';
import { findings } from '../../../../support/view-jobs.ts';
import { JOB, TASK } from '../../../../support/view-place.ts';

const REASON = 'The program ended with exit code 1';
const time = (text: string) => ({ text, ms: null });

describe('the page', needs('chromium'), () => {
  it('shows on a phone that a job failed, when, and why', async (context) => {
    const { view, page } = await shown(context, { stderr: 'out of memory\n' }, (place) => {
      const task = { id: TASK, name: 'train', state: 'Failed', startTime: null, endTime: null, errorMessage: REASON };
      const times = { submitTime: time('2026-01-01T10:00:00'), startTime: time('2026-01-01T10:05:00') };
      const ended = { endTime: time('2026-01-01T11:05:00') };
      place.report(JOB, { name: 'resnet', state: 'Failed', tasks: [task], ...times, ...ended });
    });
    await page.setViewportSize({ width: 390, height: 844 });
    await view.show(`#/job/${JOB}/live`);
    const visible = async (text: string) => await page.getByText(text).filter({ visible: true }).first().waitFor();
    for (const text of ['Failed', REASON, 'submitted', 'ended', 'run time', '1 h']) await visible(text);
    expect(await findings(view)).toEqual([]);
    const { width } = (await page.locator('.job-head').boundingBox()) ?? { width: 0 };
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
    const heading = await view.context.newCDPSession(page);
    const { nodes } = await heading.send('Accessibility.getFullAXTree');
    const names = nodes.filter(({ role }) => role?.value === 'heading').map(({ name }) => String(name?.value));
    expect(names).toContain(`Job ${JOB} resnet`);
    expect(view.wrongs).toEqual([]);
  });

  it('shows for how long a job runs whose start has no time zone', async (context) => {
    const { place, view, page } = await shown(context, {});
    place.report(JOB, { state: 'Running', startTime: time('2026-01-01T10:05:00') });
    await page.locator('.job-runTime', { hasText: /^over [0-9]+ s$/ }).waitFor();
    await view.show(`#/job/${JOB}/live`);
    await page.locator('.times', { hasText: /over [0-9]+ s/ }).waitFor();
  });

  it('shows the size and the first bytes of a binary result, and pictures beside their names', async (context) => {
    const bytes = Buffer.from(Array.from({ length: 200_000 }, (_, index) => (index * index + (index >> 3)) % 256));
    const { view, page } = await shown(context, {}, (place) => {
      place.addResult('/11/mesh.bin', bytes);
      place.addResult('/11/plain.bin', 'řádek\n');
      place.addResult(
        '/11/dot.svg',
        '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9"/></svg>',
      );
    });
    await view.show(`#/job/${JOB}/results?name=/11/mesh.bin`);
    await page.getByText('Binary, 195.3 KiB. The first 4.0 KiB:').waitFor();
    const rows = ((await page.locator('.dump').textContent()) ?? '').split('\n');
    expect(rows).toHaveLength(256);
    expect(rows[0]).toBe(
      `00000000  ${[0, 1, 4, 9, 16, 25, 36, 49].map((byte) => byte.toString(16).padStart(2, '0')).join(' ')}  ` +
        `${[...bytes.subarray(8, 16)].map((byte) => byte.toString(16).padStart(2, '0')).join(' ')}  ` +
        `|${bytes.toString('latin1', 0, 16).replaceAll(/[^ -~]/g, '.')}|`,
    );
    await page.locator('img.thumbnail').first().waitFor();
    expect(await findings(view)).toEqual([]);
    expect(await page.evaluate("document.querySelector('img.thumbnail').naturalWidth")).toBe(9);
    await page.getByRole('button', { name: 'Show as text' }).click();
    await view.pane('/11/mesh.bin');
    await page.getByRole('link', { name: 'plain.bin' }).click();
    await (await view.pane('/11/plain.bin')).getByText('řádek').waitFor();
    expect(view.wrongs).toEqual([]);
  });

  it('shows a CSV file as a table, which a click on a head sorts', async (context) => {
    const { view, page } = await shown(context, {}, (place) => {
      place.addResult('/11/loss.csv', 'step,"name, long"\n10,b\n9,<b>a</b>\n');
    });
    await view.show(`#/job/${JOB}/results?name=/11/loss.csv`);
    await page.getByRole('button', { name: 'Show as a table' }).click();
    const shows = (cells: string) => async () =>
      (await page.locator('.csv-row td').allTextContents()).join('|') === cells;
    await until('the rows of the file', shows('10|b|9|<b>a</b>'));
    await page.getByRole('button', { name: 'step' }).click();
    await until('the rows by their numbers', shows('9|<b>a</b>|10|b'));
    await page.getByRole('button', { name: 'Show as text' }).click();
    await page.locator('.row', { hasText: '9,<b>a</b>' }).waitFor();
  });

  it('shows the size of a former generation, and each sentence about a result that is not here apart', async (context) => {
    const now = Date.now();
    const { place, view, page, stdout } = await shown(context, { stdout: 'x'.repeat(2_000) }, (place) => {
      place.rewrite('stdout', 'anew\n');
      place.addResult('/11/later.dat');
      place.store.resultSyncs.save({
        ...{ jobId: JOB, startedAt: now, updatedAt: now, endedAt: now, wanted: 2, wantedBytes: null, done: 1 },
        ...{ bytes: 1_024, way: 'soap', fallback: 'no key', arriving: [] },
      });
    });
    await view.show(`#/job/${JOB}/live?file=${TASK}/stdout:g1`);
    const head = (await stdout()).locator('.pane-head');
    await head.getByText('2.0 KiB').waitFor();
    expect(await head.textContent()).not.toContain('5 B');
    await view.show(`#/job/${JOB}/results?name=/11/later.dat`);
    const sentences = page.locator('.result .empty p');
    await sentences.getByText('Files come by the service, not directly: no key').waitFor();
    expect(await sentences.count()).toBe(3);
    expect(place.failures).toEqual([]);
  });

  it('keeps the bar of a task while its progress file is emptied and written anew', async (context) => {
    const { place, view, page } = await shown(context, { progress: '50 % of the steps\n' });
    await view.show(`#/job/${JOB}/live`);
    const bar = page.locator('.task-progress progress');
    const isAt = (done: string) => async () => (await bar.getAttribute('value')) === done;
    await until('half of the bar', isAt('0.5'));
    await page.evaluate(`new MutationObserver(() => {
      if (document.querySelector('.task-progress') === null) window.barWent = true;
    }).observe(document.body, { childList: true, subtree: true })`);
    place.commit('progress', { grownAt: Date.now() });
    place.rewrite('progress', '');
    const row = page.getByRole('row', { name: /^progress/ });
    await row.getByText('empty', { exact: true }).waitFor();
    place.rewrite('progress', '60 % of the steps\n');
    await until('more of the bar', isAt('0.6'));
    expect(await page.evaluate('window.barWent')).toBeUndefined();
  });

  it('shows what was detected of a server in words', async (context) => {
    const { place, view, page } = await shown(context, {});
    for (const [name, value] of [
      ['task-shift', '-1'],
      ['rest-path', 'listed'],
      ['text-encoding', 'utf-8'],
      ['probe-entries', '64'],
      ['rest-address-GetCurrentInfoForJob', 'GET JobManagement/CurrentInfoForJob'],
      ['rest-address-ListChangedFilesForJob', 'GET FileTransfer/ListChangedFilesForJob'],
    ] as const)
      place.store.capabilities.set(name, value);
    await view.show('#/service');
    const card = page.locator('.card', { hasText: 'Detected server' });
    for (const words of ['named by the id of the task + 1', 'requested by their listed names', 'decoded as UTF-8'])
      await card.getByText(words).waitFor();
    expect(await card.textContent()).not.toMatch(/task-shift|rest-|probe/);
    // Each on a line of its own, with no break within it.
    for (const path of ['JobManagement/CurrentInfoForJob', 'FileTransfer/ListChangedFilesForJob'])
      expect((await card.getByText(path).boundingBox())?.height).toBeLessThan(25);
    const heights = await page.locator('.card').evaluateAll((cards) => cards.map((one) => one.clientHeight));
    expect(new Set(heights).size).toBe(1);
    expect(view.wrongs).toEqual([]);
  });
});
