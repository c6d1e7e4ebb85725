/** The main paths of the page in Firefox: what other tests show in Chromium. */
import fs from 'node:fs';
import { expect, it } from 'vitest';
import { requestOf, submitQuietJob } from '../../../../support/e2e-job.ts';
import { Place } from '../../../../support/e2e-place.ts';
import { until } from '../../../../support/e2e-until.ts';
import { needs } from '../../../../support/needs.ts';
import { linkOf, viewSection } from '../../../../support/view-browser.ts';
import { FirefoxPage } from '../../../../support/view-firefox.ts';
import { lines } from '../../../../support/view-growing-job.ts';

const ROWS = `[...document.querySelectorAll('.rows .text')].map((text) => text.textContent)`;

it('the page in Firefox opens, follows, scrolls, copies and searches', needs('firefox-esr'), async (context) => {
  const place = Place.make(context);
  const { sandbox, job, task } = await submitQuietJob(place);
  fs.writeFileSync(task.files.stdout, lines(0, 5_000));
  place.configure(sandbox, { watch: [requestOf(job)], results: { enabled: false }, ...(await viewSection()) });
  await place.run();
  await place.mirrored(job, 'stdout');
  const page = await FirefoxPage.open(context, await linkOf(place));
  const rows = () => page.evaluate<string[]>(ROWS);
  const shown = (what: string, text: string) => until(what, async () => (await rows()).includes(text.trimEnd()));

  await until('the job', () => page.evaluate<boolean>(`document.querySelector('.job-link') !== null`));
  await page.evaluate(`void document.querySelector('.job-link').click()`);
  await shown('the end of the file', lines(4_999, 1));
  fs.appendFileSync(task.files.stdout, lines(5_000, 3));
  await shown('what was appended', lines(5_002, 1));

  await page.wheel('.rows', -2_000);
  await until('a place before', async () => !(await rows()).includes(lines(5_002, 1).trimEnd()));
  await page.press('g');
  await shown('the beginning', lines(0, 1));
  await page.evaluate(`void document.querySelector('.number').click()`);
  await until('the selection', () => page.evaluate<boolean>(`document.querySelector('.row.selected') !== null`));
  await page.press('c');
  const copied = () => page.evaluate<string>('navigator.clipboard.readText()');
  await until('the copy', async () => (await copied()) === lines(0, 1));

  await page.press('/', ...'4321 ');
  await shown('the match', lines(4_321, 1));
  await until('its mark', async () => {
    const marks = await page.evaluate<string[]>(`[...(CSS.highlights.get('match') ?? [])].map(String)`);
    return marks.join() === '4321 ';
  });
  expect(page.wrongs).toEqual([]);
});
