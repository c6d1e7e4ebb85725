/** Two files side by side that scroll together: by the number of the line, and by the time of arrival. */
import type { Locator } from 'playwright-core';
import { expect, it } from 'vitest';
import type { LiveFileName, TaskId } from '../../../../../src/job.ts';
import { PATIENCE, until } from '../../../../support/e2e-until.ts';
import { needs } from '../../../../support/needs.ts';
import { startBrowser, ViewPage } from '../../../../support/view-browser.ts';
import { JOB, TASK, ViewPlace } from '../../../../support/view-place.ts';

const OTHER = '9002' as TaskId;
const LINES = 20_000;
const MINUTE_MS = 60_000;

/** Lines that arrived in pieces, a minute apart. */
function arrive(place: ViewPlace, file: LiveFileName, pieces: readonly string[], from: number): void {
  let content = '';
  for (const [index, piece] of pieces.entries()) {
    const before = place.store.liveFiles.get(JOB, { taskId: TASK, file });
    content += piece;
    place.write(file, content);
    place.commit(file, { grownAt: from + index * MINUTE_MS });
    const after = place.store.liveFiles.get(JOB, { taskId: TASK, file });
    if (before === undefined || after === undefined) throw new Error('no such row');
    place.store.arrivals.add({ before, after, bytes: piece.length, begunAt: from + index * MINUTE_MS });
  }
}

/** The first line on the screen. */
const topOf = (pane: Locator) =>
  pane.locator('.rows').evaluate((rows) => {
    const { top } = rows.getBoundingClientRect();
    const row = [...rows.querySelectorAll('.row')].find((one) => one.getBoundingClientRect().bottom > top + 2);
    return row?.querySelector('.text')?.textContent ?? '';
  });

it('files side by side scroll together', { ...PATIENCE, ...needs('chromium') }, async (context) => {
  const place = await ViewPlace.serve();
  place.addJob();
  place.addJob(JOB, OTHER);
  const text = (name: string) => Array.from({ length: LINES }, (_, line) => `${name} ${line + 1}\n`);
  place.write('stdout', text('out').join(''));
  place.write('stdout', text('other task').join(''), JOB, OTHER);
  const view = await ViewPage.open(await startBrowser(context), place.view.link());
  const { mouse, keyboard } = view.page;
  await view.show(`#/job/${JOB}/live?file=${TASK}/stdout&file=${OTHER}/stdout`);
  const [first, second] = [await view.pane(`stdout of task ${TASK}`), await view.pane(`stdout of task ${OTHER}`)];
  await first.getByText(`out ${LINES}`, { exact: true }).waitFor();
  await second.getByText(`other task ${LINES}`, { exact: true }).waitFor();
  await first.getByRole('button', { name: 'Scroll together' }).click();
  await keyboard.press('g');
  await until('both at their beginning', async () => (await topOf(second)) === 'other task 1');
  await first.locator('.rows').hover();
  for (let turn = 0; turn < 5; turn++) await mouse.wheel(0, 1_000);
  await until('the other task at the same line', async () => {
    const [a, b] = [await topOf(first), await topOf(second)];
    return a !== 'out 1' && a.replace('out', '') === b.replace('other task', '');
  });
  // The other one leads as soon as the reader moves it.
  await second.locator('.rows').hover();
  await mouse.wheel(0, -700);
  await until('the first one with it', async () => {
    const [a, b] = [await topOf(first), await topOf(second)];
    return b !== 'other task 1' && a.replace('out', '') === b.replace('other task', '');
  });
  await keyboard.press('End');
  for (const pane of [first, second]) {
    await pane.getByRole('button', { name: 'Following' }).waitFor();
    await until('its end', () => view.isAtEnd(pane));
  }
  await keyboard.press('s');
  await keyboard.press('g');
  await until('one at its beginning', async () => (await topOf(first)) === 'out 1');
  expect(await view.isAtEnd(second)).toBe(true);
  expect(view.wrongs).toEqual([]);
});

it('output and errors scroll together by the time of arrival', {
  ...PATIENCE,
  ...needs('chromium'),
}, async (context) => {
  const place = await ViewPlace.serve();
  place.addJob();
  const text = (name: string, count: number) => Array.from({ length: count }, (_, line) => `${name} ${line + 1}\n`);
  // Both wrote a piece a minute: the output a hundred lines, the errors three.
  const minutes = Array.from({ length: 40 }, (_, minute) => minute);
  const pieces = (lines: readonly string[], each: number) =>
    minutes.map((minute) => lines.slice(minute * each, (minute + 1) * each).join(''));
  arrive(place, 'stdout', pieces(text('out', 4_000), 100), 1_000_000);
  arrive(place, 'stderr', pieces(text('warning', 4_000), 30), 1_000_000);
  const view = await ViewPage.open(await startBrowser(context), place.view.link());
  await view.show(`#/job/${JOB}/live?file=${TASK}/stdout&file=${TASK}/stderr`);
  const [out, errors] = [await view.pane(`stdout of task ${TASK}`), await view.pane(`stderr of task ${TASK}`)];
  await out.getByText('out 4000', { exact: true }).waitFor();
  await out.locator('.scroll-keys').focus();
  await view.page.keyboard.press('s');
  await view.page.keyboard.press('l');
  await view.page.keyboard.type('2050');
  await view.page.keyboard.press('Enter');
  await until('the errors of the same minute', async () => {
    const minute = Math.floor((Number((await topOf(out)).replace('out ', '')) - 1) / 100);
    return minute > 15 && minute < 25 && (await topOf(errors)) === `warning ${minute * 30 + 1}`;
  });
  expect(view.wrongs).toEqual([]);
});
